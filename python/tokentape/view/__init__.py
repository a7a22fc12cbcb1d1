"""Views of trajectories for people."""

from __future__ import annotations

from tokentape.view.terminal import LEGEND, show_row, show_trajectory

__all__ = ["LEGEND", "show_row", "show_trajectory"]
