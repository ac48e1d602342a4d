"""What runs took and brought, as one HTML page: `page.py` composes it of sections, each of figures."""
