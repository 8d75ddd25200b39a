"""`forecourt lead`: hand a shopper's enquiry to a dealer, after the shopper's yes and not without it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from forecourt.cli._shop import clean, print_json, print_pairs, run, shopping

if TYPE_CHECKING:
    from forecourt.client import Client, ConsentGrant

_MAX_GRANT_BYTES: Final = 1024 * 1024
_KINDS: Final = {
    "test_drive": "a test drive",
    "sales": "a visit",
    "service": "a service visit",
    "trade_in": "an appraisal",
}


@click.command("lead")
@shopping
@click.option("--first-name", help="The shopper's first name.")
@click.option("--last-name", help="The shopper's last name.")
@click.option("--email", help="The shopper's email address.")
@click.option("--phone", help="The shopper's phone number, +14155550100.")
@click.option("--channel", "channels", type=click.Choice(["email", "phone", "sms"]), multiple=True,
              help="How the dealer may answer; repeatable (default: the contacts given).")  # fmt: skip
@click.option("--prefer", type=click.Choice(["email", "phone", "sms", "any"]), help="The way that the shopper prefers.")
@click.option("--vin", help="The vehicle of interest, by VIN.")
@click.option("--stock", help="The vehicle of interest, by stock number.")
@click.option("--id", "vehicle_id", help="The vehicle of interest, by vehicle_id.")
@click.option("--appointment", type=click.Choice([*_KINDS]), help="Ask for an appointment as well.")
@click.option("--at", metavar="TIME", help="When, with an offset: 2026-11-02T14:00:00-08:00.")
@click.option("--message", help="What the shopper wants to say.")
@click.option("--agent", default="forecourt", show_default=True, help="The name of the buyer's agent.")
@click.option("--grant", type=click.Path(exists=True, dir_okay=False), help="A consent grant given before, as JSON.")
@click.option("--key", help="The idempotency key (default: a new one).")
@click.option("--pending", type=click.Path(dir_okay=False), help="Keep the lead here until its outcome is known.")
@click.option("--resume", type=click.Path(exists=True, dir_okay=False), help="Send the lead of such a file again.")
@click.option("--dealer", "dealer_id", metavar="ID", help="A seller of a network (contract 3.1).")
def command(url: str, as_json: bool, resume: str | None, agent: str, **values: Any) -> None:
    """Submit a lead.

    What will be shared is shown, and nothing is sent without a yes.

    A lead is never doubled: where its outcome is not known, --resume the file of --pending, as often as needed.

    \b
    Example:
      forecourt lead https://dealer.example.com --first-name Jordan --last-name Lee \\
        --email jordan@example.com --vin 1G1FY6SW1NA000493 --pending lead.json
    """
    options = {name: values.pop(name) for name in ("contract", "binding", "timeout", "headers", "identity")}
    if resume is not None:
        receipt = _resume(url, as_json, resume, options)
    else:
        _check(values)
        grant = _read_grant(values["grant"]) if values["grant"] else None
        if grant is None and values["pending"] and Path(values["pending"]).exists():
            # A new consent would make another lead of it.
            raise click.ClickException(
                f"{values['pending']} holds a lead whose outcome is not known; "
                f"send it with --resume {values['pending']}"
            )
        if grant is None and not sys.stdin.isatty():
            raise click.UsageError(
                "consent is asked on a terminal, and this is none; give --grant with a grant that the shopper gave"
            )

        async def work(dealer: "Client") -> Any:
            return await _submit(dealer, values, grant, agent)

        receipt = run(work, url, as_json, agent=agent, **options)
    if as_json:
        print_json(receipt.raw)
        return
    appointment = receipt.appointment
    print_pairs(
        [
            ("lead", receipt.lead_id or ""),
            ("status", receipt.status or ""),
            ("appointment", (appointment.status or "") if appointment else ""),
            ("confirmed at", (appointment.confirmed_at or "") if appointment else ""),
            ("other times", ", ".join(appointment.proposed_times) if appointment else ""),
            ("dealer", " ".join(str(value) for value in receipt.dealer.values())),
            ("", receipt.message or ""),
            ("key", receipt.key),
        ]
    )


def _check(values: dict[str, Any]) -> None:
    missing = [f"--{name.replace('_', '-')}" for name in ("first_name", "last_name") if not values[name]]
    if not (values["email"] or values["phone"]):
        missing.append("--email or --phone")
    if missing:
        raise click.UsageError(f"the dealer needs {', '.join(missing)}")
    for channel, contact in (("email", "email"), ("phone", "phone"), ("sms", "phone")):
        if channel in values["channels"] and not values[contact]:
            raise click.UsageError(f"--channel {channel} needs --{contact}")
    if values["pending"] and not Path(values["pending"]).parent.is_dir():
        raise click.UsageError(f"--pending: there is no folder {Path(values['pending']).parent}")
    if values["at"] and not values["appointment"]:
        raise click.UsageError("--at needs --appointment")


def _read_grant(path: str) -> "ConsentGrant":
    from forecourt.client import ConsentGrant

    try:
        with Path(path).open("rb") as file:
            return ConsentGrant.from_payload(json.loads(file.read(_MAX_GRANT_BYTES)))
    except (ValueError, AttributeError) as error:
        why = f": {error}" if type(error) is ValueError else ""
        raise click.UsageError(f"--grant: {path} holds no consent grant{why}") from None


def _resume(url: str, as_json: bool, path: str, options: dict[str, Any]) -> Any:
    from forecourt.client import PendingError, load_pending

    try:
        submission = load_pending(path)
    except (PendingError, OSError) as error:
        raise click.ClickException(str(error)) from None
    options["contract"] = submission.contract
    return run(lambda dealer: dealer.resume_lead(path), url, as_json, **options)


async def _submit(dealer: "Client", values: dict[str, Any], grant: "ConsentGrant | None", agent: str) -> Any:
    reference = {"vin": values["vin"], "stock": values["stock"], "vehicle_id": values["vehicle_id"]}
    wanted = {name: value for name, value in reference.items() if value}
    kind, at = values["appointment"], values["at"]
    if grant is None:
        grant = await _ask(dealer, values, wanted, agent)
    customer = {name: values[name] for name in ("first_name", "last_name", "email", "phone") if values[name]}
    if values["prefer"]:
        customer["preferred_contact"] = values["prefer"]
    appointment = {"appointment_type": kind, **({"appointment_at": at} if at else {})} if kind else None
    return await dealer.submit_lead(
        customer,
        grant,
        vehicle_of_interest=wanted or None,
        appointment=appointment,
        message=values["message"],
        dealer_id=values["dealer_id"],
        key=values["key"],
        pending=values["pending"],
    )


async def _ask(dealer: "Client", values: dict[str, Any], wanted: dict[str, str], agent: str) -> "ConsentGrant":
    """Show what will be shared and return the grant of a yes; anything else ends the command."""
    from forecourt.client import Disclosure

    information = await dealer.information(dealer_id=values["dealer_id"])
    vehicle = await dealer.vehicle(**wanted, dealer_id=values["dealer_id"]) if wanted else None
    contacts = [channel for channel, given in (("email", values["email"]), ("phone", values["phone"])) if given]
    channels = values["channels"] or contacts
    known = {"email": "email address", "phone": "phone number"}
    others = [known[contact] for contact in contacts if contact not in channels]
    if "phone number" in others and "sms" in channels:
        others.remove("phone number")
    disclosure = Disclosure(
        seller=clean(information.name or dealer.name or "the dealer"),
        channels=tuple(channels),
        vehicle=clean(f"{vehicle.title} ({', '.join(wanted.values())})") if vehicle else None,
        agent=agent if agent != "forecourt" else None,
        shares=(*others, *(["message"] if values["message"] else [])),
        appointment=_KINDS[values["appointment"]] if values["appointment"] else None,
    )
    click.echo(disclosure.text, err=True)
    if not click.confirm("Do you agree?", default=False, err=True):
        raise click.ClickException("nothing was sent: the shopper did not agree")
    return disclosure.granted()
