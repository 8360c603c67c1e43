"""Short statements that a user expects memory to keep, and short messages that a user does not want kept.

The authors of the rules look at every second line of each list, from the first on. The others are only measured.
"""
# ruff: noqa: RUF001

from collections.abc import Sequence

STATEMENTS: Sequence[str] = tuple(
    """
I'm allergic to peanuts.
I am lactose intolerant.
My son has asthma.
I have type 1 diabetes.
I can't eat gluten.
I'm vegan.
I don't drink alcohol.
I quit smoking.
My blood type is O negative.
My daughter is allergic to penicillin.
I take 20 mg of citalopram a day.
I'm pregnant.
I broke my left wrist.
I wear contact lenses.
I don't eat pork.
Ben can't have dairy.
I'm colour blind.
I have a bad back.
My sister Anna lives in Lisbon.
Anna has moved to Porto.
My wife's name is Julia.
Tom is my brother.
We have two kids.
My mother died in March.
Lena and Paul got divorced.
Our daughter starts school in September.
My dog is called Rex.
We adopted a cat.
My birthday is May 4.
Julia's birthday is on 12 June.
I'm 34.
I turned forty.
My partner is a nurse.
Max is engaged to Clara.
My parents live in Graz.
Our baby is due in April.
I got married.
I live in Berlin.
I moved to Hamburg.
We're moving to Oslo in June.
My address is 12 Elm Street.
I'm from Argentina.
I bought a house.
We sold the car.
My flat has no lift.
I work at Siemens.
I'm a teacher.
I started a new job at Bosch.
I was promoted to team lead.
My boss is Tom.
Petra is my new manager.
I no longer work for Acme.
I got laid off.
I work from home on Fridays.
I'm self-employed now.
I study physics in Leiden.
I switched to Neovim.
I use a Mac.
I prefer dark mode.
My keyboard layout is Dvorak.
I hate coriander.
My favourite colour is green.
I don't like phone calls.
I drive a Skoda.
I play the cello.
I'm learning Japanese.
I speak Polish.
My time zone is CET.
I'm left-handed.
I've stopped using Chrome.
My shoe size is 43.
I support Arsenal.
Call me Jo.
Always use tabs.
Never push to main.
Use British spelling.
Don't use emojis.
Answer in German from now on.
Keep answers short.
Please call me Dr. Weber.
Write commit messages in the imperative.
Don't call me before nine.
The standup is at 10 now.
Actually the deadline is Friday.
The release is on May 3.
The retro moved to Thursday.
The review is every second Tuesday.
The launch has been postponed to July.
The deadline was extended by a week.
Our office is closed on Monday.
My flight leaves at 7:40 on Sunday.
The dentist appointment is on the 14th.
The project is called Falcon.
We use Postgres 16.
We're on Python 3.12 now.
The API runs on port 8443.
Staging is at staging.example.com.
The backend is written in Go.
We decided against Kubernetes.
We agreed on two-week sprints.
We dropped support for IE11.
The budget is 20k.
Maria is the product owner.
Jonas left the team.
Priya joined us as a designer.
Our client is Nordwind AG.
The repo moved to GitLab.
Tests need Docker.
The code freeze starts on Monday.
Main is protected.
Deploys happen on Wednesdays.
We chose Redis for the cache.
The on-call person this week is Sam.
The meeting room is 4.12.
The customer wants a PDF export.
Ich bin allergisch gegen Nüsse.
Ich vertrage keine Milch.
Ich esse kein Fleisch.
Meine Tochter hat Zöliakie.
Ich habe mit dem Rauchen aufgehört.
Mein Hund heißt jetzt Rex.
Meine Schwester wohnt in Köln.
Anna ist nach Porto gezogen.
Ich wohne in Leipzig.
Wir ziehen im Mai nach Bremen.
Ich bin Ärztin.
Ich arbeite jetzt bei Bosch.
Mein Chef heißt Thomas.
Mein Geburtstag ist am 3. Mai.
Ich mag keinen Koriander.
Ich trinke keinen Kaffee mehr.
Ich nutze jetzt Vim.
Nenn mich Jo.
Bitte immer duzen.
Antworte auf Deutsch.
Das Standup ist jetzt um 10.
Die Abgabe ist erst am Freitag.
Wir nutzen Postgres 16.
Das Projekt heißt Falke.
Lukas leitet jetzt das Team.
Der Zahnarzttermin ist am Dienstag.
我搬到上海了。
我对花生过敏。
我吃素。
我有糖尿病。
我妹妹住在北京。
我叫李明。
我的生日是五月四日。
我在华为工作。
我换工作了。
我不吃辣。
我女儿三岁了。
我的狗叫旺财。
我喜欢深色模式。
请用中文回答。
会议改到周四了。
截止日期是周五。
我们用Postgres。
项目叫猎鹰。
我不喝咖啡了。
老板换成王芳了。
""".strip().splitlines()
)
"""What a user expects memory to keep."""

CHATTER: Sequence[str] = tuple(
    """
Hi there!
Good morning!
Hey, how's it going?
Hello again.
Good night.
See you tomorrow.
Talk to you later.
Have a nice weekend!
Bye for now.
Nice to meet you.
Thanks a lot!
Thank you, that helped.
Thanks, you're the best.
Got it.
Okay, makes sense.
Sounds good to me.
Yes, please.
No, thanks.
Sure, go ahead.
Right, that's what I meant.
I see.
I understand now.
Fair enough.
Never mind.
No problem at all.
You're right.
That's wrong.
That is not what I asked.
That's not quite it.
I don't think that's correct.
Wow, that's amazing!
Haha, that's funny.
That's great news!
Oh no.
What a mess.
That was quick.
Interesting.
I like it.
I love it!
I don't like this one.
Looks good to me.
This looks much better.
This is too long.
The second one is better.
I prefer the first one.
Perfect, exactly what I wanted.
That's a good point.
Not bad.
What's the weather like?
Can you help me?
How does this work?
What time is it in Tokyo?
Who wrote Faust?
Why did it fail?
Is that safe?
What's the capital of Chile?
Where is the config file?
Which one is faster?
Do you know Rust?
Are you there?
Tell me a joke.
Show me the diff.
Run it again.
Run the tests.
Try again.
Continue.
Go on.
Stop.
Wait a second.
Open the file.
Delete that line.
Fix the typo.
Fix the second test first.
Make it shorter.
Make the button blue.
Rename the variable to count.
Translate this into French.
Summarise the text above.
Explain it in simple words.
Write a haiku about rain.
Add a test for that.
Undo the last change.
Use the other one.
Give me three examples.
Show me more.
Please shorten the second paragraph.
Convert it to JSON.
Sort the list by date.
Add a comma after the name.
Look at line 40.
I'm tired.
I'm so hungry right now.
I'm bored.
I'm a bit stressed today.
I'm confused.
I'm not sure.
I'm happy with that.
I feel great today.
I'm on my phone.
I'm on the train right now.
I'll be back in five minutes.
I have to go now.
I need a coffee.
I'm in a meeting.
I'm having lunch.
I'm back.
I'm still here.
I just got home.
Sorry, I was away.
Let me think.
Let me check.
Let me try that.
Let's see.
Let's start.
Let's move on to the next one.
Give me a moment.
I'll try it.
I'll have a look.
I'm waiting.
I'm reading it now.
It works now.
It still doesn't work.
It's broken again.
The tests pass.
The tests are green again.
The build failed.
Now I get another error.
It crashed.
There's a typo in line 3.
The page is loading.
It's done.
I get a 404.
The output is empty.
I restarted it.
I copied the wrong line.
It's raining here.
It's so hot today.
My screen froze.
The coffee is cold.
Monday again.
Almost weekend.
Time flies.
I forgot what I wanted to say.
I had a typo in my question.
I asked you that already.
Here is the log.
Here's the second part.
The file is attached.
Hallo!
Guten Morgen!
Vielen Dank, das hilft mir.
Alles klar, danke dir.
Wie geht's?
Was bedeutet das?
Kannst du mir helfen?
Versuch es noch mal.
Mach es kürzer.
Zeig mir den Fehler.
Ich bin müde.
Ich bin gleich wieder da.
Ich schaue mal.
Ich muss kurz weg.
Ich verstehe das nicht.
Jetzt geht es.
Es geht immer noch nicht.
Der Test ist rot.
Das gefällt mir.
Das ist zu lang.
Moment, ich überlege.
Ich bin gerade unterwegs.
Lass uns anfangen.
Bis morgen!
你好！
早上好。
谢谢你的帮助。
好的，明白了。
今天天气怎么样？
你能帮我吗？
再试一次。
短一点。
我很累。
我在路上。
我等一下回来。
让我想想。
现在可以了。
还是不行。
太好了！
我不懂。
这个不对。
继续。
哈哈，有意思。
明天见。
""".strip().splitlines()
)
"""What a user does not want kept."""

SEEN, MEASURED = slice(0, None, 2), slice(1, None, 2)
"""The lines that the authors of the rules look at, and those that are only measured."""
