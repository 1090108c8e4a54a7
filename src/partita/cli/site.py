"""`partita site`: a folder with the explorer page, which answers without a server."""

from __future__ import annotations

from pathlib import Path

from partita.cli import common


def declare(commands: common.Commands) -> None:
    """The releases, and where the folder goes."""
    says = "write a folder with a page that explores releases without a server"
    parser = common.command(commands, "site", run, says, example="partita site releases -o site")
    parser.add("folder DIR", "releases, files that end in .release.parquet; all of it becomes public")
    parser.add("-o --output DIR", "a folder that does not exist yet", required=True)
    parser.add("--force", "replace the folder if it was written by this command")


def run(options: common.Options) -> common.Outcome:
    """Write the folder whole or not at all."""
    from partita.service.process import check_installed

    check_installed()

    from partita.service.site.write import write_site

    site = write_site(Path(options.folder), Path(options.output), overwrite=options.force, tell=common.say)
    number, page = len(site.releases), site.folder / "index.html"
    text = (
        f"wrote {number} release{'s' if number > 1 else ''} to {site.folder}, {site.size / 1e6:.1f} MB with "
        f"a script of {site.script / 1e3:.0f} kB; open {page}, or put the folder on any web space"
    )
    return common.Outcome.of(
        text,
        folder=str(site.folder),
        releases=list(site.releases),
        bytes=site.size,
        script_bytes=site.script,
        page=str(page),
    )
