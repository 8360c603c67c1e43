"""Keeps the receipts of turns in the audit trail."""

import attrs

from beaver_hooks.audit.trail import Trail
from beaver_hooks.receipts.facts import Identify
from beaver_hooks.receipts.receipt_builder import Account
from beaver_hooks.receipts.receipts import Receipt, to_json


@attrs.frozen(kw_only=True)
class ReceiptStore:
    """Keeps receipts in the trail; without a trail it keeps none.

    Attributes:
        trail: the trail, or `None` if it could not be opened.
        identify: turns an id into a keyed hash.
    """

    trail: Trail | None
    identify: Identify

    def keep(self, account: Account) -> None:
        """Keep the current receipt of a turn; a later one replaces it. The trail's thread writes it."""
        if self.trail is not None:
            self.trail.put_receipt(account.recorded, account.opened, lambda: to_json(self.receipt_of(account)))

    def receipt_of(self, account: Account) -> Receipt:
        """Return the current receipt of a turn."""
        return account.receipt(self.identify)
