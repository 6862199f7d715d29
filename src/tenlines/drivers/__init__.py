"""Drivers perform effects and report what happened. They decide nothing: no order, no limit, no retry."""
