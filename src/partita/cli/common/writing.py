"""Files that a command leaves behind, whole or not at all."""

from __future__ import annotations

from partita.errors.errors import InvalidParameter


def write_whole(path: str, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file in one step; what stops that is said in the words of the command line."""
    from partita.storage.file_disk import Temporary, checked_path

    try:
        with Temporary(checked_path(path), overwrite=overwrite) as temporary:
            temporary.write(data)
            temporary.commit()
    except InvalidParameter as error:
        fix = error.fix.replace("overwrite=True", "--force")
        raise InvalidParameter("output", error.rule, given=path, fix=fix) from None
