"""ADF/XML 1.0, the format in which dealers' CRMs take leads: written from a stored lead, and checked before it leaves.

Nothing here does I/O. The structure of the format is data, in `schema.toml`.
"""

from forecourt.lead.adf.prospect import ADFError, ADFLead, ADFOptions, to_adf
from forecourt.lead.adf.schema import check
from forecourt.lead.adf.text import to_ascii_xml

__all__ = ["ADFError", "ADFLead", "ADFOptions", "check", "to_adf", "to_ascii_xml"]
