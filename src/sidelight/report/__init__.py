"""Results for people: one HTML file that needs nothing else, and tables for a terminal."""

from sidelight.report.page import write_report as write_report
