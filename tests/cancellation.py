"""Cancels a task at any of the points at which it suspends."""

import asyncio


class CancelledAt:
    """Awaits something, and cancels its own task when that suspends for the k-th time (from 1)."""

    def __init__(self, body, point):
        self.body, self.point, self.suspensions = body, point, 0

    def __await__(self):
        steps, resume, value = self.body.__await__(), "send", None
        while True:
            try:
                waited_for = getattr(steps, resume)(value)
            except StopIteration as end:
                return end.value
            self.suspensions += 1
            if self.suspensions == self.point:
                asyncio.current_task().cancel()
            try:
                resume, value = "send", (yield waited_for)
            except BaseException as error:
                resume, value = "throw", error
