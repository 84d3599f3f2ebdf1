"""Dumps that flame's own injection library writes (``*.fdump``), see ``inject/dump/dump.h``."""
