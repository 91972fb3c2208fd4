"""The names of this room; the loader reads this file too."""

from sidelight.studio.typescript import typescript as typescript
