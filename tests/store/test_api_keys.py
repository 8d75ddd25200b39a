"""Keys are kept as digests, in their order, and revoked once."""

from asyncio import Runner
from dataclasses import replace
from datetime import timedelta

from tests.store.sample import NOW

from forecourt.store import APIKey, Store

ONE = APIKey("fck_1", b"\x00\xff" * 16, "One, \u00fcber", None, None, None, NOW)
TWO = APIKey("fck_2", b"2" * 32, "Two", ("a", "b/c"), 5, 60, NOW + timedelta(seconds=1))


def test_keys_come_back_as_they_were_kept(runner: Runner, store: Store) -> None:
    assert runner.run(store.api_keys()) == []
    for key in (TWO, ONE):
        runner.run(store.add_api_key(key))
    assert list(runner.run(store.api_keys())) == [ONE, TWO]


def test_a_key_is_revoked_once_and_stays_to_be_seen(runner: Runner, store: Store) -> None:
    for key in (ONE, TWO):
        runner.run(store.add_api_key(key))
    later = NOW + timedelta(hours=1)
    assert runner.run(store.revoke_api_key("fck_2", later))
    assert not runner.run(store.revoke_api_key("fck_2", later + timedelta(hours=1)))
    assert not runner.run(store.revoke_api_key("fck_3", later))
    assert list(runner.run(store.api_keys())) == [ONE, replace(TWO, revoked_at=later)]
