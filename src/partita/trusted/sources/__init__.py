"""Where rows are. A source gives exact grouped counts; no error shows a value."""
