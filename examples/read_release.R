# Answer ranges from a release file with base R and DuckDB, without Partita:
#
#   Rscript read_release.R FILE COLUMN LOW HIGH [LOW HIGH ...]
#
# prints a line of CSV for each range: its ends, the estimated number of rows, and a 95% interval. Both ends belong
# to the range. It reads releases with one view of counts, of one column, of the kinds `histogram` and `tree`, whose
# noise is discrete Laplace, and stops at anything else. Columns may be of integers, decimals, dates and labels.
#
# DuckDB is its command line, `duckdb` or the program that the environment variable DUCKDB names.

refuse <- function(...) stop(paste0(...), call. = FALSE)

# --- the file, through DuckDB ---------------------------------------------------------------------------

literal <- function(text) paste0("'", gsub("'", "''", text, fixed = TRUE), "'")

query <- function(sql) {
  file <- tempfile(fileext = ".sql")
  on.exit(unlink(file))
  writeLines(enc2utf8(sql), file, useBytes = TRUE)
  lines <- suppressWarnings(system2(Sys.getenv("DUCKDB", "duckdb"), "-csv", stdin = file, stdout = TRUE))
  if (length(lines) == 0 || !is.null(attr(lines, "status"))) refuse("DuckDB could not read the file")
  read.csv(text = lines, colClasses = "character", na.strings = "", encoding = "UTF-8", check.names = FALSE)
}

spec <- function(path, ...) {
  # Values of the JSON in the footer: text by the JSON path of each.
  fields <- paste0("coalesce(spec->>", vapply(c(...), literal, ""), ", '') AS f", seq_along(c(...)), collapse = ", ")
  found <- query(paste0(
    "WITH footer AS (SELECT decode(value)::JSON AS spec FROM parquet_kv_metadata(", literal(path),
    ") WHERE decode(key) = 'partita') SELECT 'found' AS f0, ", fields, " FROM footer;"
  ))
  if (nrow(found) != 1) refuse("this is no Partita release")
  unlist(found[1, -1], use.names = FALSE)
}

listed <- function(path, place) {
  # The texts of a list in the footer, in their order.
  found <- query(paste0(
    "WITH footer AS (SELECT decode(value)::JSON AS spec FROM parquet_kv_metadata(", literal(path),
    ") WHERE decode(key) = 'partita') SELECT unnest(spec->>", literal(paste0(place, "[*]")), ") AS entry FROM footer;"
  ))
  found$entry
}

keys <- function(path, place) {
  found <- query(paste0(
    "WITH footer AS (SELECT decode(value)::JSON AS spec FROM parquet_kv_metadata(", literal(path),
    ") WHERE decode(key) = 'partita') SELECT unnest(json_keys(spec, ", literal(place), ")) AS entry FROM footer;"
  ))
  found$entry
}

series <- function(path, column, name) {
  # The noisy integers of one series, as doubles that hold them exactly.
  text <- paste0('"', gsub('"', '""', paste0(column, ".", name), fixed = TRUE), '"')
  found <- as.numeric(query(paste0("SELECT unnest(", text, ") AS noisy FROM ", literal(path), ";"))$noisy)
  if (anyNA(found) || any(abs(found) > 2^53)) refuse("this release holds numbers beyond 2^53: R would round them")
  found
}

ratio <- function(text) {
  parts <- as.numeric(strsplit(text, "/", fixed = TRUE)[[1]])
  if (length(parts) == 2) parts[1] / parts[2] else parts
}

# --- the one view that is read here ---------------------------------------------------------------------

read_release <- function(path, column) {
  top <- spec(path, "$.format", "$.version", "$.guarantee.epsilon", "$.guarantee.delta", "$.guarantee.unit")
  if (!identical(top[1], "partita release")) refuse("this is no Partita release")
  if (!top[2] %in% c("1", "6", "7")) refuse("a file of version ", top[2], " is not read here: let Partita answer")
  entries <- keys(path, "$.views[0]")
  about <- spec(path, "$.views[0].column", "$.views[0].kind", "$.views[1].kind")
  if (!all(c("column", "specials") %in% entries) || !is.na(about[3])) {
    refuse("only a release with one view, of one column, is read here: let Partita answer")
  }
  if (!identical(about[1], column)) refuse("this release is about the column ", about[1])
  known <- list(histogram = c("size", "scale"), tree = c("size", "branching", "scales"))[[about[2]]]
  if (is.null(known)) refuse("releases of kind ", about[2], " are not read here: let Partita answer")
  facts <- keys(path, "$.views[0].facts")
  if (!all(known %in% facts) || !all(facts %in% c(known, "consistent", "imported"))) {
    refuse("this file says more of its counts than is known here: let Partita answer")
  }
  list(
    path = path, column = column, kind = about[2], domain = read_domain(path), consistent = "consistent" %in% facts,
    counts = if (about[2] == "tree") read_tree(path, column) else read_histogram(path, column)
  )
}

read_histogram <- function(path, column) {
  list(noisy = series(path, column, "noisy"), variance = variance(ratio(spec(path, "$.views[0].facts.scale"))))
}

read_tree <- function(path, column) {
  scales <- vapply(listed(path, "$.views[0].facts.scales"), ratio, 0, USE.NAMES = FALSE)
  levels <- lapply(seq_along(scales), function(level) series(path, column, paste0("level", level - 1)))
  branching <- as.numeric(spec(path, "$.views[0].facts.branching"))
  list(levels = levels, noise = variance(scales), branching = branching)
}

variance <- function(scale) 2 * exp(-1 / scale) / expm1(-1 / scale)^2  # of discrete Laplace noise

# --- values as cells, counted from 1 --------------------------------------------------------------------

read_domain <- function(path) {
  place <- function(name) spec(path, paste0("$.views[0].domain.", name))
  kind <- place("kind")
  switch(kind,
    integer = list(kind = kind, low = as.numeric(place("low")), high = as.numeric(place("high")), step = 1),
    real = list(kind = kind, low = ratio(place("low")), high = ratio(place("high")), step = ratio(place("step"))),
    date = list(
      kind = kind, low = as.numeric(as.Date(place("start"))), high = as.numeric(as.Date(place("end"))), step = 1
    ),
    category = list(kind = kind, labels = listed(path, "$.views[0].domain.labels")),
    refuse("columns declared as ", kind, " are not read here: let Partita answer")
  )
}

cell <- function(domain, value) {
  if (domain$kind == "category") {
    found <- match(value, domain$labels)
    if (is.na(found)) refuse("no label is called ", value)
    return(found)
  }
  number <- if (domain$kind == "date") as.numeric(as.Date(value)) else suppressWarnings(as.numeric(value))
  if (is.na(number) || number < domain$low || number > domain$high) {
    refuse(value, " does not lie within the declared bounds")
  }
  steps <- (number - domain$low) / domain$step
  if (abs(steps - round(steps)) > 1e-6) refuse(value, " lies between two cells")
  round(steps) + 1
}

# --- answers --------------------------------------------------------------------------------------------

answer <- function(release, low, high) {
  first <- cell(release$domain, low)
  last <- cell(release$domain, high)
  if (first > last) refuse("a range goes from low to high")
  found <- if (release$kind == "histogram") {
    cells <- release$counts$noisy[first:last]
    c(sum(cells), length(cells) * release$counts$variance)
  } else if (release$consistent) {
    count_consistent(release$counts, first, last)
  } else {
    count_nodes(release$counts, first, last)
  }
  half <- qnorm(0.975) * sqrt(found[2])
  # Counts are never negative: neither end of the interval is below zero. The value stays as it is.
  data.frame(low = low, high = high, value = found[1], from = max(0, found[1] - half), to = max(0, found[1] + half))
}

count_nodes <- function(tree, first, last) {
  # The fewest nodes that make up the range: from each level what does not fill a node above.
  value <- 0
  spread <- 0
  low <- first - 1
  behind <- last
  for (level in seq_along(tree$levels)) {
    nodes <- tree$levels[[level]]
    up <- ceiling(low / tree$branching)
    down <- if (behind == length(nodes)) ceiling(behind / tree$branching) else floor(behind / tree$branching)
    done <- up >= down || level == length(tree$levels)
    taken <- if (done) seq_len(behind - low) + low else {
      middle <- min(down * tree$branching, behind)
      c(seq_len(up * tree$branching - low) + low, seq_len(behind - middle) + middle)
    }
    value <- value + sum(nodes[taken])
    spread <- spread + length(taken) * tree$noise[level]
    if (done) break
    low <- up
    behind <- down
  }
  c(value, spread)
}

families <- function(values, branching) {
  as.vector(rowsum(values, (seq_along(values) - 1) %/% branching, reorder = FALSE))
}

solve_tree <- function(tree, levels) {
  # Weighted least squares over all nodes: each is the mean of its own count and of the sum of its children, weighed
  # by inverse variances, from the leaves up; then children take what their sum lacks, from the root down.
  own <- list(rep(tree$noise[1], length(levels[[1]])))
  means <- list(levels[[1]])
  below <- sums <- list(NULL)
  for (level in seq_along(levels)[-1]) {
    below[[level]] <- families(own[[level - 1]], tree$branching)
    sums[[level]] <- families(means[[level - 1]], tree$branching)
    own[[level]] <- 1 / (1 / below[[level]] + 1 / tree$noise[level])
    gain <- own[[level]] / tree$noise[level]
    means[[level]] <- sums[[level]] + gain * (levels[[level]] - sums[[level]])
  }
  solved <- means[[length(levels)]]
  for (level in rev(seq_along(levels)[-1])) {
    lacking <- rep((solved - sums[[level]]) / below[[level]], each = tree$branching)
    children <- means[[level - 1]]
    solved <- children + own[[level - 1]] * lacking[seq_along(children)]
  }
  solved
}

count_consistent <- function(tree, first, last) {
  weights <- numeric(length(tree$levels[[1]]))
  weights[first:last] <- 1
  # The covariance of all cells times the weights is what the solver makes of these leaves, and of zeros above.
  probe <- lapply(tree$levels, function(level) numeric(length(level)))
  probe[[1]] <- weights * tree$noise[1]
  c(sum(solve_tree(tree, tree$levels)[first:last]), sum(weights * solve_tree(tree, probe)))
}

# --- the command ----------------------------------------------------------------------------------------

main <- function(words) {
  if (length(words) < 4 || length(words) %% 2 != 0) {
    refuse("usage: Rscript read_release.R FILE COLUMN LOW HIGH [LOW HIGH ...]")
  }
  release <- read_release(words[1], words[2])
  ends <- matrix(words[-(1:2)], nrow = 2)
  rows <- lapply(seq_len(ncol(ends)), function(each) answer(release, ends[1, each], ends[2, each]))
  cat("low,high,value,from,to\n")
  for (row in rows) cat(sprintf("%s,%s,%.4f,%.4f,%.4f\n", row$low, row$high, row$value, row$from, row$to), sep = "")
}

if (!interactive() && sys.nframe() == 0L) main(commandArgs(trailingOnly = TRUE))
