"""Who and what a lead is about, reduced to keys that can be compared: the same person, the same vehicle.

Used to find an equivalent lead that came without an idempotency key (CONTRACTS.md section 6).
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, Final

__all__ = ["person_keys", "vehicle_key"]

_DESCRIPTION: Final = ("year", "make", "model", "trim")


def person_keys(customer: Mapping[str, Any], seller: str) -> frozenset[str]:
    """Return one key for the email and one for the phone; two customers with a key in common are the same
    person.

    Same email *or* same phone decides (ours). Names do not: they are spelled in too many ways, and a shopper
    who adds a phone to a second submission is still one shopper. Emails are compared without case and
    surrounding spaces, phones by number (E.164), or by their digits where no number can be read from them.

    A key is the SHA-256, in hex, of the value together with the `seller` id, so that the keys of two sellers
    cannot be joined. It is no anonymity: numbers can be tried one after another, so keys are purged with the
    customer's data. Without a readable email or phone the set is empty, and equals nobody.
    """
    keys = set()
    email = customer.get("email")
    if isinstance(email, str) and (address := _folded(email)):
        keys.add(_digest(seller, "email", address))
    phone = customer.get("phone")
    if isinstance(phone, str) and (number := _number(phone)):
        keys.add(_digest(seller, "phone", number))
    return frozenset(keys)


def vehicle_key(vehicle: Mapping[str, Any] | None, listing_id: str | None) -> str:
    """Return a key that is equal for the same vehicle: the best identification there is.

    That is the listing that the reference was resolved to; else the VIN without case, spaces and hyphens;
    else year, make, model and trim without case, accents and spare spaces (as a digest, of bounded length);
    else "none", which all leads about no vehicle in particular share.
    """
    if listing_id is not None:
        return f"listing:{listing_id}"
    if not vehicle:
        return "none"
    vin = vehicle.get("vin")
    if isinstance(vin, str) and (plain := "".join(sign for sign in vin.upper() if sign.isalnum())):
        return "vin:" + (plain if plain.isascii() and len(plain) <= 17 else _digest(plain))
    words = [_word(vehicle.get(member)) for member in _DESCRIPTION]
    return "described:" + _digest(*words) if any(words) else "none"


def _number(phone: str) -> str:
    import phonenumbers  # a tenth of a second to import, and needed by leads with a phone only

    try:
        parsed = phonenumbers.parse(phone, None)
    except phonenumbers.NumberParseException:
        return "".join(str(digit) for sign in phone if (digit := unicodedata.decimal(sign, None)) is not None)
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip().casefold())


def _word(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int | str):
        return ""
    apart = unicodedata.normalize("NFKD", str(value).casefold())
    return " ".join("".join(sign for sign in apart if not unicodedata.combining(sign)).split())


def _digest(*parts: str) -> str:
    # JSON keeps the parts apart whatever they contain, and writes lone surrogates, which UTF-8 cannot. Put together
    # here as json.dumps would, which takes several times as long for a list of texts as for the texts.
    return hashlib.sha256(f"[{', '.join(map(encode_basestring_ascii, parts))}]".encode("ascii")).hexdigest()
