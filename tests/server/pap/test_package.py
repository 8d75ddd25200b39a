"""PAP is off unless it is switched on, and what it needs is imported only then."""

import subprocess
import sys
from pathlib import Path

import pytest

from forecourt.server import ConfigError, create_app, load

ON = {"enabled": True, "domain": "dealer.example.com"}


def test_nothing_of_the_package_is_imported_where_pap_is_off() -> None:
    script = (
        "import sys; from forecourt.server import create_app; create_app();"
        "print([name for name in ('personal_agent_protocol', 'pydantic', 'jwt') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_where_the_extra_is_missing_the_mistake_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['personal_agent_protocol'] = None\n"
        "from forecourt.server import ConfigError, create_app, load\n"
        "try:\n    create_app(load(None, pap={'enabled': True, 'domain': 'dealer.example.com'}))\n"
        "except ConfigError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "pap.enabled: PAP needs the extra: pip install 'forecourt[pap]'"


def test_a_configuration_that_cannot_serve_pap_makes_no_application(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^server.public_url"):
        create_app(load(None, data=str(tmp_path), server={"public_url": "http://dealer.example.com"}, pap=ON))


def test_an_application_with_pap_has_a_site(tmp_path: Path) -> None:
    assert create_app(load(None, data=str(tmp_path), pap=ON))._pap is not None
    assert create_app(load(None, data=str(tmp_path)))._pap is None
