"""Write rust/template/entities.txt: the character references of HTML 5 that `html.unescape` knows, one a line.

python3.11 tests/tools/make_entity_table.py > rust/template/entities.txt
"""

from __future__ import annotations

import html.entities

for name, characters in sorted(html.entities.html5.items()):
    print(name, " ".join(f"{ord(character):x}" for character in characters))
