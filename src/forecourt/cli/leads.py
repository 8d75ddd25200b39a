"""`forecourt leads`: what came in, its grant, its deliveries and its status; sending it again, and forgetting it."""

import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from forecourt.cli._count import counted

if TYPE_CHECKING:
    from forecourt.lead.reseal import Resealed
    from forecourt.server.deployment import Deployment
    from forecourt.store import Delivery, LeadRecord, StatusChange

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

_COLUMNS: Final = ("lead", "received", "status", "appointment", "rooftop", "deliveries")
_LEAD_WORDS: Final = ("received", "duplicate", "rejected", "working", "sold_to", "lost")
_APPOINTMENT_WORDS: Final = (
    "requested", "proposed", "confirmed", "rejected", "completed", "no_show", "cancelled",
)  # fmt: skip


def _where(command: Command) -> Command:
    """Add the options that say which database it is about."""
    command = click.option(
        "--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data)."
    )(command)
    return click.option(
        "--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file."
    )(command)


@click.group("leads")
def command() -> None:
    """Show, export, resend, mark and purge leads.

    \b
    Example:
      forecourt leads list --config forecourt.toml
    """


@command.command("list")
@click.option("--dealer", metavar="ID", help="Only this seller's leads.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@_where
def list_(dealer: str | None, limit: int, as_json: bool, config: str | None, data: str | None) -> None:
    """Show the newest leads, without anything of the shoppers.

    \b
    Example:
      forecourt leads list --limit 20
    """

    async def work(deployment: "Deployment") -> list[dict[str, Any]]:
        records = await deployment.store.leads(_known(deployment, dealer), limit)
        deliveries = await deployment.store.deliveries([record.lead_id for record in records])
        return [_summary(record, [each for each in deliveries if each.lead_id == record.lead_id]) for record in records]

    found = _run(config, data, work)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found:
        click.echo("no lead has come in")
    else:
        _table([[_row(each)[column] for column in _COLUMNS] for each in found])


@command.command("show")
@click.argument("lead_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_where
def show(lead_id: str, as_json: bool, config: str | None, data: str | None) -> None:
    """Show one lead: what the shopper sent, the consent grant as it came, deliveries and history.

    \b
    Example:
      forecourt leads show lead_01JQ3M8Z6T5W9X2C4V7B1N0K8D
    """

    async def work(deployment: "Deployment") -> dict[str, Any]:
        from forecourt.lead.outbox import opened

        record = await _record(deployment, lead_id)
        deliveries = await deployment.store.deliveries([lead_id])
        changes = await deployment.store.status_changes(lead_id)
        business, grant = opened(record, deployment.dispatch().sealer)
        return {
            **_summary(record, deliveries),
            "dealer_id": record.dealer_id,
            "listing_id": record.listing_id,
            "purged_at": record.purged_at,
            "lead": business,
            "grant": grant.decode(),
            "answer": json.loads(record.receipt),
            "deliveries": [_delivery(each) for each in deliveries],
            "history": _history(record, changes),
        }

    found = _run(config, data, work)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    click.echo("\n".join(_told(found)))


@command.command("export")
@click.argument("lead_id", metavar="ID")
@click.option(
    "--format", "form", type=click.Choice(["adf", "json"]), default="adf", show_default=True, help="The form."
)
@_where
def export(lead_id: str, form: str, config: str | None, data: str | None) -> None:
    """Print one lead as ADF/XML, or as JSON with its grant.

    \b
    Example:
      forecourt leads export lead_01JQ3M8Z6T5W9X2C4V7B1N0K8D --format adf > lead.xml
    """

    async def work(deployment: "Deployment") -> bytes:
        from forecourt.lead.adf import ADFError, to_adf
        from forecourt.lead.outbox import adf_lead, opened

        record = await _record(deployment, lead_id)
        sealer = deployment.dispatch().sealer
        if form == "adf":
            try:
                return to_adf(adf_lead(record, _seller(deployment, record), sealer))
            except ADFError as error:
                raise click.ClickException(f"the lead cannot be written as ADF: {error}") from None
            except ValueError as error:
                raise click.ClickException(str(error)) from None
        business, grant = opened(record, sealer)
        whole = {
            "lead_id": record.lead_id, "dealer_id": record.dealer_id, "rooftop": record.rooftop,
            "listing_id": record.listing_id, "received_at": record.received_at, "status": record.status,
            "lead": business, "grant": grant.decode(),
        }  # fmt: skip
        return json.dumps(whole, ensure_ascii=False).encode() + b"\n"

    click.echo(_run(config, data, work), nl=False)


@command.command("resend")
@click.argument("lead_id", metavar="ID")
@click.option("--to", "target", metavar="TARGET", help="Only to the target of this name, events included.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_where
def resend(lead_id: str, target: str | None, as_json: bool, config: str | None, data: str | None) -> None:
    """Send a lead again, under its old delivery ids; a running server does it within seconds.

    \b
    Example:
      forecourt leads resend lead_01JQ3M8Z6T5W9X2C4V7B1N0K8D
    """

    async def work(deployment: "Deployment") -> int:
        record = await _record(deployment, lead_id)
        if record.purged_at is not None:
            raise click.ClickException("the lead's personal data was deleted; there is nothing to send")
        key = None if target is None else f"{record.dealer_id}/{target}"
        made_due: int = await deployment.store.resend_deliveries(lead_id, datetime.now(UTC), key)
        return made_due

    count = _run(config, data, work)
    if as_json:
        click.echo(json.dumps({"lead_id": lead_id, "deliveries": count}))
    if not count:
        raise click.ClickException(f"{lead_id} has no delivery {'to this target' if target else 'to send again'}")
    if not as_json:
        click.echo(f"{lead_id}: {count} {'delivery is' if count == 1 else 'deliveries are'} due now")


@command.command("status")
@click.argument("lead_id", metavar="ID")
@click.argument("status", type=click.Choice(_LEAD_WORDS), required=False)
@click.option("--appointment", type=click.Choice(_APPOINTMENT_WORDS), help="The status of its appointment.")
@click.option("--at", metavar="TIME", help="When a confirmed appointment is, as 2026-05-04T11:00:00-07:00.")
@click.option("--json", "as_json", is_flag=True, help="Print what has changed as one JSON array.")
@_where
def status_(
    lead_id: str,
    status: str | None,
    appointment: str | None,
    at: str | None,
    as_json: bool,
    config: str | None,
    data: str | None,
) -> None:
    """Say what became of a lead, of its appointment, or of both.

    \b
    Example:
      forecourt leads status lead_01JQ3M8Z6T5W9X2C4V7B1N0K8D working --appointment completed
    """
    if status is None and appointment is None:
        raise click.UsageError("name a status, or --appointment with one")
    if at is not None and appointment != "confirmed":
        raise click.UsageError("--at is for --appointment confirmed")

    async def work(deployment: "Deployment") -> "Sequence[StatusChange]":
        from forecourt.lead.moment import parse_time
        from forecourt.lead.status import StatusError, change_status

        record = await _record(deployment, lead_id)
        try:
            start = None if at is None else parse_time(at)
        except ValueError as error:
            raise click.UsageError(f"--at: {error}") from None
        try:
            return await change_status(
                deployment.store, deployment.dispatch(), _seller(deployment, record), record,
                lead=status, appointment=appointment, at=start, now=datetime.now(UTC),
            )  # fmt: skip
        except StatusError as error:
            raise click.ClickException(str(error)) from None

    changes = _run(config, data, work)
    if as_json:
        click.echo(json.dumps([_change(change) for change in changes]))
        return
    for change in changes:
        click.echo(f"{change.entity_id}: {change.previous} -> {change.status}")
    if not changes:
        click.echo(f"{lead_id}: it is so already")


@command.command("purge")
@click.option("--older-than", metavar="DAYS", help="Leads that came in longer ago, such as 365d.")
@click.option("--lead", "lead_ids", metavar="ID", multiple=True, help="This lead, whatever its age; may be repeated.")
@click.option("--dealer", metavar="ID", help="Only this seller's leads.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_where
def purge(
    older_than: str | None,
    lead_ids: tuple[str, ...],
    dealer: str | None,
    dry_run: bool,
    as_json: bool,
    config: str | None,
    data: str | None,
) -> None:
    """Delete the personal data of old leads, or of one; the proof of consent stays for leads.keep_proof_days.

    \b
    Example:
      forecourt leads purge --older-than 365d --dry-run
      forecourt leads purge --lead lead_01JQ3M8Z6T5W9X2C4V7B1N0K8D
    """
    if (older_than is None) == (not lead_ids):
        both = ", not both" if lead_ids else ""
        raise click.UsageError(f"give --older-than with days, or --lead with the id of a lead{both}")
    if lead_ids and dealer is not None:
        raise click.UsageError("--dealer is for --older-than")
    days = "1" if older_than is None else older_than.removesuffix("d")
    if not (days.isascii() and days.isdigit()) or not 1 <= int(days[:9]) <= 36_500:
        raise click.UsageError("--older-than: give days from 1d to 36500d, such as 365d")

    async def work(deployment: "Deployment") -> dict[str, int]:
        from forecourt.store import Purge

        now = datetime.now(UTC)
        proofs_before = now - timedelta(days=deployment.config.leads.keep_proof_days)
        everything = Purge(now - timedelta(days=int(days)), proofs_before, now, _known(deployment, dealer))
        store = deployment.store
        for lead_id in lead_ids:
            await _record(deployment, lead_id)
        total = [0, 0, 0]
        for wanted in [replace(everything, lead_id=lead_id) for lead_id in lead_ids] or [everything]:
            done = await (store.count_purge(wanted) if dry_run else store.purge_leads(wanted))
            total = [total[0] + done.leads, total[1] + done.proofs, total[2] + done.keys]
        return dict(zip(("leads", "proofs", "keys"), total, strict=True))

    found = _run(config, data, work)
    if as_json:
        click.echo(json.dumps({**found, "dry_run": dry_run}))
        return
    would = "would be deleted" if dry_run else "deleted"
    click.echo(f"personal data of {counted(found['leads'], 'lead')} {would}")
    if lead_ids:
        return
    click.echo(f"proof of consent of {counted(found['proofs'], 'lead')} {would}")
    click.echo(f"{counted(found['keys'], 'expired idempotency key')} {would}")


@command.command("find")
@click.option("--email", help="The shopper's email address.")
@click.option("--phone", help="The shopper's phone number.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@_where
def find(email: str | None, phone: str | None, as_json: bool, config: str | None, data: str | None) -> None:
    """Find the leads of one shopper, of every seller, by email address or phone number.

    \b
    Example:
      forecourt leads find --email sam@example.com
    """
    if not email and not phone:
        raise click.UsageError("give --email or --phone")

    async def work(deployment: "Deployment") -> tuple[list[dict[str, Any]], str]:
        from forecourt.lead.search import leads_of

        try:
            looked = await leads_of(deployment.store, deployment.dispatch().sealer, email, phone)
        except ValueError as error:
            raise click.UsageError(f"{'--email' if '@' in str(error) else '--phone'}: {error}") from None
        found = []
        for lead_id in looked.lead_ids:
            record = await deployment.store.lead(lead_id)
            if record is not None:
                found.append({"dealer_id": record.dealer_id, **_summary(record, ())})
        return found, f"{counted(looked.closed, 'lead')} cannot be opened: {looked.reason}" if looked.closed else ""

    found, closed = _run(config, data, work)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not found:
        click.echo("no lead is of this shopper")
    else:
        for each in found:
            row = _row(each)
            click.echo("\t".join((row["lead"], row["received"], row["status"], each["dealer_id"], row["rooftop"])))
    if closed:
        raise click.ClickException(closed)


@command.command("reseal")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_where
def reseal_(as_json: bool, config: str | None, data: str | None) -> None:
    """Encrypt again, under the newest key, what an older key or none has encrypted.

    Servers may run meanwhile. Stopped at any moment, it goes on when it is called again.

    \b
    Example:
      forecourt leads reseal --config forecourt.toml
    """

    async def work(deployment: "Deployment") -> "Resealed":
        from forecourt.lead.reseal import reseal

        sealer = deployment.dispatch().sealer
        if not sealer.key_ids:
            raise click.UsageError("leads.encryption_key_env is not set: there is no key to encrypt with")
        return await reseal(deployment.store, sealer)

    found = _run(config, data, work)
    if as_json:
        click.echo(json.dumps({"done": found.done, "left": found.left, "reasons": found.reasons}))
    else:
        click.echo(f"{found.done} lead{'' if found.done == 1 else 's'} encrypted again, {found.left} left")
    if found.left:
        why = "; ".join(found.reasons) or "a server still encrypts with an older key, or is at work on them"
        raise click.ClickException(f"not everything is under the newest key: {why}")


# What commands share


def _run(config: str | None, data: str | None, work: "Callable[[Deployment], Coroutine[Any, Any, Result]]") -> Result:
    """Do something with a deployment whose store is open; its agent is not started."""
    import asyncio

    from forecourt.lead.sealing import SealError
    from forecourt.server import ConfigError, load
    from forecourt.server.deployment import Deployment
    from forecourt.store import StoreError

    async def opened() -> Result:
        await deployment.store.open()
        try:
            return await work(deployment)
        finally:
            await deployment.store.close()

    try:
        deployment = Deployment(load(config, data=data))
        return asyncio.run(opened())
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except StoreError as error:
        raise click.ClickException(f"the leads cannot be reached: {error}") from None
    except SealError as error:
        raise click.ClickException(f"the lead cannot be opened: {error}") from None


def _known(deployment: "Deployment", dealer: str | None) -> str | None:
    if dealer is not None and dealer not in deployment.sellers:
        raise click.UsageError(f"--dealer: there is no seller {dealer!r}")
    return dealer


async def _record(deployment: "Deployment", lead_id: str) -> "LeadRecord":
    record: LeadRecord | None = await deployment.store.lead(lead_id)
    if record is None:
        raise click.ClickException("there is no lead of this id")
    return record


def _seller(deployment: "Deployment", record: "LeadRecord") -> Any:
    seller = deployment.sellers.get(record.dealer_id)
    if seller is None:
        raise click.ClickException(f"the configuration has no seller {record.dealer_id}, whose lead it is")
    return seller


def _summary(record: "LeadRecord", deliveries: "Sequence[Delivery]") -> dict[str, Any]:
    booking = record.booking
    return {
        "lead_id": record.lead_id,
        "received_at": record.received_at,
        "status": record.status,
        "rooftop": record.rooftop,
        "appointment": None
        if booking is None
        else {
            "appointment_id": booking.appointment_id,
            "appointment_type": booking.kind,
            "status": booking.status,
            "start": None if booking.start is None else booking.start.isoformat(),
            "end": None if booking.end is None else booking.end.isoformat(),
        },
        "deliveries": {
            status: count
            for status in ("delivered", "waiting", "parked")
            if (count := sum(each.status == status for each in deliveries))
        },
    }


def _row(summary: dict[str, Any]) -> dict[str, str]:
    visit = summary["appointment"]
    return {
        "lead": summary["lead_id"],
        "received": summary["received_at"][:19] + "Z",
        "status": summary["status"],
        "appointment": "" if visit is None else f"{visit['appointment_type']} {visit['status']}",
        "rooftop": _plain(summary["rooftop"] or ""),
        "deliveries": ", ".join(f"{count} {status}" for status, count in summary["deliveries"].items()),
    }


def _delivery(delivery: "Delivery") -> dict[str, Any]:
    return {
        "delivery_id": delivery.delivery_id,
        "target": delivery.target,
        "kind": delivery.kind,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "next_at": delivery.next_at.isoformat() if delivery.status == "waiting" else None,
        "settled_at": None if delivery.settled_at is None else delivery.settled_at.isoformat(),
        "reason": delivery.reason,
    }


def _change(change: "StatusChange") -> dict[str, Any]:
    return {
        "entity_id": change.entity_id,
        "previous": change.previous,
        "status": change.status,
        "changed_at": change.changed_at.isoformat(),
    }


def _history(record: "LeadRecord", changes: "Sequence[StatusChange]") -> list[dict[str, Any]]:
    """Return all statuses with their times, beginning with those that the lead came with."""
    first = [(record.lead_id, record.status)]
    if record.booking is not None:
        first.append((record.booking.appointment_id, record.booking.status))
    began = [
        {
            "entity_id": entity_id,
            "previous": None,
            "status": next((each.previous for each in changes if each.entity_id == entity_id), now),
            "changed_at": record.received_at,
        }
        for entity_id, now in first
    ]
    return began + [_change(change) for change in changes]


def _told(found: dict[str, Any]) -> list[str]:
    row = _row({**found, "deliveries": {}})
    lines = [f"{row['lead']}  {row['status']}  received {row['received']}  {row['rooftop']}"]
    if found["appointment"] is not None:
        visit = found["appointment"]
        when = f" at {visit['start']}" if visit["start"] else ""
        lines.append(f"appointment {visit['appointment_id']}  {row['appointment']}{when}")
    lines += ["", "Lead"]
    if found["lead"] is None:
        lines.append(f"  its personal data was deleted at {found['purged_at']}")
    else:
        rest = {name: value for name, value in found["lead"].items() if name != "consent"}
        lines += [f"  {_plain(line)}" for line in json.dumps(rest, ensure_ascii=False, indent=2).splitlines()]
    lines += ["", "Consent grant, as it came", f"  {_plain(found['grant'])}", "", "Deliveries"]
    lines += [
        f"  {each['delivery_id']}  {each['target']}  {each['kind']}  {each['status']}"
        + (f", {each['attempts']} attempts" if each["attempts"] else "")
        + (f", next at {each['next_at']}" if each["next_at"] else "")
        + (f": {each['reason']}" if each["reason"] else "")
        for each in found["deliveries"]
    ] or ["  none"]
    lines += ["", "History"]
    lines += [f"  {each['changed_at']}  {each['entity_id']}  {each['status']}" for each in found["history"]]
    return lines


def _plain(text: str) -> str:
    """Return text of a shopper's or a profile's so that nothing in it steers a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _table(rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for column in _COLUMNS:
            table.add_column(column, no_wrap=column == "lead")
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    click.echo("\n".join("\t".join(row) for row in [_COLUMNS, *rows]))
