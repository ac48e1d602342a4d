"""The sections of the page, a file each: what runs, or datasets, have to show there, as figures."""
