"""What a later statement does to an earlier one. Pure.

Two statements conflict if they give one attribute of one subject two values and it has one value at a time, if the
later one denies or ends the earlier one, or if it names the thing that it replaces. Where none of that is certain, both
live: a wrong memory beside a right one costs less than a lost one.
"""

from collections.abc import Collection, Sequence

import attrs

from beaver_memory.reconcile.claim import NO_CLAIM, Attribute, Claim
from beaver_memory.reconcile.decision import Finding
from beaver_memory.reconcile.topics import apart, by_topic, differ_in_relation, of_other_kinds

MOST_WORDS = 8
"""Words of statements whose forms are compared."""

FEW = 3
"""Words of a statement that can be contained in another one."""

OTHER = "other"
"""The attribute that any noun names."""


def finding(earlier: Claim, later: Claim) -> Finding | None:
    """Return what a later statement does to an earlier one; `None` if both can be true."""
    if earlier is NO_CLAIM or later is NO_CLAIM:
        return None
    later = named(earlier, _marked(earlier, later))
    if earlier.planned or later.planned or earlier.past or later.past:
        return None
    if said_again := _repeated(earlier, later):
        return said_again
    if later.additive or (not later.ends and limits_itself(earlier, later)):
        return None
    if earlier.kin != later.kin:
        return _by_denial(earlier, later)
    return (
        _by_replacement(earlier, later)
        or _by_attribute(earlier, later)
        or _by_denial(earlier, later)
        or _by_form(earlier, later)
        or by_topic(earlier, later)
    )


def limits_itself(earlier: Claim, later: Claim) -> bool:
    """Return whether the later statement limits itself, or tells of one more habit: gym on Mondays, on Thursdays."""
    return _is_narrower(later, earlier) or (earlier.habit and later.habit and not later.switches)


def _marked(earlier: Claim, later: Claim) -> Claim:
    """Return the later statement without its mark of a change if it calls only another thing new."""
    only_new = later.renewed and not later.changes_otherwise
    if (
        only_new
        and not later.renewed & earlier.content
        and not later.attributes.keys() & earlier.attributes.keys() - {OTHER}
    ):
        return attrs.evolve(later, changes=False)
    return later


def named(earlier: Claim, later: Claim) -> Claim:
    """Return the later statement with the relation of the person whom it names: "my sister Anna", and then "Anna"."""
    is_known = bool(later.subject) and later.subject in earlier.names and later.subject != earlier.subject
    return attrs.evolve(later, kin=earlier.kin) if is_known and not later.kin else later


# --- The rules --------------------------------------------------------------------------------------------------------


def _repeated(earlier: Claim, later: Claim) -> Finding | None:
    """The same words, or some more or fewer of them in the same order."""
    if earlier.ends != later.ends or earlier.own != later.own:
        return None
    if earlier.words == later.words:
        return Finding(verdict="NONE", reason="same_words")
    if later.changes and earlier.numbers - later.content and _within(later.words, earlier.words):
        # "I have a cat now", after "I have three cats".
        return Finding(verdict="DELETE", reason="other_number")
    if len(later.words) >= FEW and _within(later.words, earlier.words) and not later.changes:
        return Finding(verdict="NONE", reason="fewer_words")
    if len(earlier.words) >= FEW and _within(earlier.words, later.words) and not later.changes:
        return Finding(verdict="UPDATE", reason="more_words")
    return None


def _by_replacement(earlier: Claim, later: Claim) -> Finding | None:
    """The later statement names what it replaces, and the earlier one says that."""
    given_up = later.replaced & earlier.content
    enough = len(given_up) if later.language == "zh" else 2 * len(given_up)
    # "I have a new phone", and "I got rid of my old phone".
    is_other = bool(earlier.renewed & given_up and later.contrasts - earlier.contrasts)
    if (later.ends and _gives_up_a_part(later, earlier)) or _leaves_members(later, earlier):
        return None
    if given_up and enough >= len(later.replaced) and not earlier.ends and not is_other:
        return Finding(verdict="DELETE", reason="replaced")
    return None


def _by_attribute(earlier: Claim, later: Claim) -> Finding | None:
    """Both give the same attribute of the same subject different values."""
    for name in earlier.attributes.keys() & later.attributes.keys():
        before, after = earlier.attributes[name], later.attributes[name]
        if not _same_subject(earlier, later, before, after) or not _is_single(name, earlier, later):
            continue
        if of_other_kinds(before, after) or (before.described and not later.changes):
            continue
        if earlier.ends or (later.ends and not later.changes):
            denial, other = (later, earlier) if later.ends else (earlier, later)
            is_whole = later.ends != earlier.ends and not _denies_a_part(denial, other)
            if is_whole and _has_object(denial, set(before.value) & set(after.value)):
                return Finding(verdict="DELETE", reason="denied")
        elif _differ(before, after, changes=later.changes) or _other_clock(earlier, later, before, after):
            return Finding(verdict="DELETE", reason="single_value")
    return None


def _is_single(name: str, earlier: Claim, later: Claim) -> bool:
    """Return whether an attribute has one value at a time, as two statements use it."""
    if earlier.attributes[name].marked and not later.switches:
        return False
    if later.changes:
        return name != OTHER or not earlier.attributes[name].subject <= (earlier.kin | earlier.names)
    if name == OTHER:
        numbers = earlier.numbers.intersection(earlier.attributes[name].value)
        return bool(numbers and later.numbers.intersection(later.attributes[name].value))
    return not earlier.attributes[name].of_things or not (later.happened or earlier.several & later.several)


def _by_denial(earlier: Claim, later: Claim) -> Finding | None:
    """One of them denies or ends what the other one says."""
    # "I sold my old bike", and "I have a new bike".
    is_over = earlier.ends and (earlier.happened or (not earlier.denies and later.renewed & earlier.content))
    is_over = is_over or bool(later.ends and earlier.renewed & later.content and later.contrasts - earlier.contrasts)
    if later.ends == earlier.ends or is_over:
        return None
    denied, other = (later, earlier) if later.ends else (earlier, later)
    if not later.ends and not later.changes and denied.words[-1:] != other.words[-1:]:
        return None
    core = _core(denied)
    if not _is_denied(denied, other, core) or not _same_holder(denied, other, core):
        return None
    return Finding(verdict="DELETE", reason="denied")


def _core(denied: Claim) -> frozenset[str]:
    """Return the words that a statement denies."""
    relations = frozenset("".join(denied.kin)) if denied.language == "zh" else denied.kin
    return denied.kept - denied.several - relations or denied.kept


def _is_denied(denied: Claim, other: Claim, core: frozenset[str]) -> bool:
    """Return whether a statement denies another one, rather than one in some words of it."""
    common = core & other.content
    if not common - denied.numbers or 2 * len(common) < len(core):
        return False
    if not _has_object(denied, common) or _denies_a_part(denied, other):
        return False
    if (denied.kin and denied.kin != other.kin) or (denied.denies and not core - denied.numbers <= other.content):
        return False
    # "I have never been to Kyoto" does not deny "I'm reading a novel set in Kyoto".
    if denied.denies and 2 * len(common) < len(other.content):
        return False
    return not denied.topics or bool(denied.topics & other.topics)


def _has_object(denied: Claim, common: Collection[str]) -> bool:
    """Return whether common words hold an object of the denial: "I don't eat meat" says nothing about fish."""
    objects = denied.kept & denied.strong
    return bool(common) and (denied.language == "zh" or not objects or not objects.isdisjoint(common))


def _same_holder(denied: Claim, other: Claim, core: frozenset[str]) -> bool:
    """Return whether a denial is about the subject of the other statement."""
    if denied.kin == other.kin and denied.own and other.own:
        return True
    if denied.kin == other.kin and not denied.own and not other.own:
        return denied.words[0] in other.content
    # "Rex died" ends "We have a dog named Rex", and "I left Jo" ends "Jo is my partner".
    return core <= other.content and (not denied.own or other.words[0] in core)


def _by_form(earlier: Claim, later: Claim) -> Finding | None:
    """Both have the same form with another number, or a marked change of one part."""
    if later.ends or earlier.ends or earlier.own != later.own or (later.happened and not later.changes):
        return None
    several = earlier.several | later.several
    before, after = earlier.content - later.content - several, later.content - earlier.content - several
    common = earlier.content & later.content
    if not before or not after or not common:
        return None
    if len(before) == len(after) == 1 and before <= earlier.numbers and after <= later.numbers:
        return Finding(verdict="DELETE", reason="other_number")
    same_head = (earlier.own or earlier.words[0] in common) and not apart(earlier, later)
    same_head = same_head and not differ_in_relation(earlier, later)
    same_head = same_head and not _differ_in_two_parts(earlier, later)
    many = max(len(earlier.content), len(later.content))
    if later.changes and same_head and not several and many <= MOST_WORDS and 2 * len(common) >= many:
        return Finding(verdict="DELETE", reason="marked_change")
    return None


# --- Comparisons ------------------------------------------------------------------------------------------------------


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


def _same_subject(earlier: Claim, later: Claim, before: Attribute, after: Attribute) -> bool:
    one, other = before.subject, after.subject
    if one == other:
        return True
    contrasts = earlier.contrasts ^ later.contrasts
    if contrasts & (one | other) and not (later.changes and other <= one):
        return False
    if not (one <= other or other <= one):
        return False
    extra = one ^ other
    if before.of_things:
        return bool(one and other) and later.changes and not extra & (earlier.names | later.names)
    return bool(one and other) and (later.changes or not extra & (earlier.names | later.names))


def _differ_in_two_parts(earlier: Claim, later: Claim) -> bool:
    """Return whether both have other numbers and other words: "yoga at six", "pottery at seven"."""
    rests = earlier.strong - later.strong, later.strong - earlier.strong
    numbers = earlier.numbers - later.numbers, later.numbers - earlier.numbers
    return all(numbers) and all(rest - number for rest, number in zip(rests, numbers, strict=True))


def _differ(before: Attribute, after: Attribute, *, changes: bool) -> bool:
    one, other = frozenset(before.value), frozenset(after.value)
    if one <= other or other <= one:
        return changes and one != other and (other < one or before.value[-1] != after.value[-1])
    return True


def _other_clock(earlier: Claim, later: Claim, before: Attribute, after: Attribute) -> bool:
    """Return whether both values have other numbers that share characters: \u5341\u70b9, \u5341\u4e00\u70b9."""
    if later.language != "zh" or not later.changes:
        return False
    numbers = (
        [each for each in value if each in claim.numbers]
        for value, claim in ((before.value, earlier), (after.value, later))
    )
    one, other = numbers
    return bool(one and other) and one != other


# --- Parts of the cases: "We no longer use Docker on macOS" leaves "We use Docker" true -------------------------------


def _is_narrower(later: Claim, earlier: Claim) -> bool:
    """Return whether the later statement names a condition or a purpose, and the earlier one names none."""
    # "I moved to Porto for my job" tells a reason.
    purposes = frozenset() if later.changes else later.purposes
    return _is_limit(later, later.conditions, earlier, earlier.conditions) or _is_limit(
        later, purposes, earlier, earlier.purposes
    )


def _denies_a_part(denial: Claim, other: Claim) -> bool:
    """Return whether a denial leaves a part of the other statement true.

    It names a condition, a purpose or a place that the other statement does not name, or only some members of a list.
    """
    return _leaves_members(denial, other) or (bool(_limits(denial)) and not _limits(denial) & other.content)


def _leaves_members(denial: Claim, other: Claim) -> bool:
    """Return whether a denial names only some members of a list: "We no longer use Kubernetes" of two tools."""
    named = [not each.isdisjoint(denial.content) for each in other.parts]
    return any(named) and not all(named)


def _gives_up_a_part(later: Claim, earlier: Claim) -> bool:
    """Return whether the later statement gives up a part of the earlier one: "I stopped using Slack on my phone"."""
    limits = _limits(later) & later.replaced
    return bool(limits) and not limits & earlier.content


def _limits(denial: Claim) -> frozenset[str]:
    # "I sold my car in Berlin": where something happened limits nothing.
    return frozenset() if denial.happened else denial.conditions | denial.purposes | denial.places


def _is_limit(later: Claim, limits: frozenset[str], earlier: Claim, earlier_limits: frozenset[str]) -> bool:
    if not limits or earlier_limits or limits & earlier.content:
        return False
    # "The meeting is on Fridays" gives a value, and no condition.
    names = later.attributes.keys() & earlier.attributes.keys() or later.attributes.keys()
    return not names or not all(limits >= set(later.attributes[name].value) for name in names)
