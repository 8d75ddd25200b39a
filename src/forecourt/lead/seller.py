"""A seller: whose listings are served, where its rooftops are, and how it gives appointments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forecourt.lead.calendar import AppointmentRules
from forecourt.lead.hours import OpeningHours

__all__ = ["Seller"]


@dataclass(frozen=True, slots=True)
class Seller:
    """One dealer or dealer group.

    `profile` is the public profile as contracts write it (name, welcome_message, rooftops), with `dealer_id` in it.
    `strict_times` rejects a submission whose appointment cannot be had as asked for, instead of taking the lead and
    proposing other times.
    """

    dealer_id: str
    profile: Mapping[str, Any]
    rules: AppointmentRules = field(default_factory=AppointmentRules)
    strict_times: bool = False
    hours: Mapping[str, OpeningHours] = field(default_factory=dict)

    @classmethod
    def from_profile(
        cls,
        dealer_id: str,
        profile: Mapping[str, Any],
        rules: AppointmentRules | None = None,
        *,
        strict_times: bool = False,
        holidays: Mapping[str, Mapping[str, str] | None] | None = None,
    ) -> "Seller":
        """Read a profile. Raises HoursError (a ValueError) for opening hours that cannot be read."""
        hours = {rooftop["name"]: OpeningHours.from_profile(rooftop, holidays) for rooftop in profile["rooftops"]}
        return cls(dealer_id, {**profile, "dealer_id": dealer_id}, rules or AppointmentRules(), strict_times, hours)

    def rooftop(self, name: str | None) -> Mapping[str, Any] | None:
        """Return the profile of the rooftop with this name."""
        return next((rooftop for rooftop in self.profile["rooftops"] if rooftop["name"] == name), None)
