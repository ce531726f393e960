local({
  mark <- strsplit(commandArgs(TRUE)[1], ":", fixed = TRUE)[[1]][5]
  input <- requests
  out <- file("/dev/fd/1", "wb", raw = TRUE)
  bad <- file("/dev/fd/2", "wb", raw = TRUE)
  text <- function(s) {
    s <- paste(enc2utf8(as.character(s)), collapse = "\n")
    codes <- utf8ToInt(s)
    if (length(codes) == 0 || anyNA(codes)) return("\"\"")
    big <- codes > 0xffff
    parts <- ifelse(codes == 34, "\\\"", ifelse(codes == 92, "\\\\", ifelse(codes < 32 | codes > 126, sprintf("\\u%04x", ifelse(big, 0xfffd, codes)), intToUtf8(codes, multiple = TRUE))))
    paste0("\"", paste(parts, collapse = ""), "\"")
  }
  send <- function(message, to = out) {
    data <- charToRaw(message)
    size <- 4096 - 38
    at <- 1
    repeat {
      piece <- data[at:min(length(data), at + size - 1)]
      last <- at + size > length(data)
      writeBin(c(as.raw(0x1e), charToRaw(sprintf("%s%s%04x", mark, if (last) "." else "+", length(piece))), piece), to)
      flush(to)
      at <- at + size
      if (last) break
    }
  }
  decode <- function(word) {
    table <- c(LETTERS, letters, 0:9, "+", "/")
    v <- match(strsplit(gsub("=", "", word, fixed = TRUE), "")[[1]], table) - 1
    if (length(v) == 0) return("")
    while (length(v) %% 4) v <- c(v, NA)
    m <- matrix(v, 4)
    m0 <- ifelse(is.na(m), 0, m)
    n <- m0[1, ] * 262144 + m0[2, ] * 4096 + m0[3, ] * 64 + m0[4, ]
    bytes <- as.vector(rbind(n %/% 65536, (n %/% 256) %% 256, n %% 256))
    bytes <- bytes[seq_len(length(bytes) - sum(is.na(v)))]
    s <- rawToChar(as.raw(bytes))
    Encoding(s) <- "UTF-8"
    s
  }
  shown <- function(seq, main, kind, form) {
    flush(stdout())
    send(sprintf("{\"t\":\"result\",\"n\":\"%s\",\"main\":%s,\"data\":{%s}}", seq, if (main) "true" else "false",
      paste(sprintf("\"%s\":%s", kind, form), collapse = ",")))
  }
  plots <- tempfile("paddock-plot-", fileext = "-%d.png")
  pictures <- function(seq) {
    if (!is.null(dev.list())) graphics.off()
    files <- Sys.glob(sub("%d", "*", plots, fixed = TRUE))
    for (f in files) {
      raw <- readBin(f, "raw", file.size(f))
      unlink(f)
      shown(seq, FALSE, c("text/plain", "image/png"), c("\"<plot>\"", paste0("\"", encode(raw), "\"")))
    }
  }
  encode <- function(raw) {
    table <- c(LETTERS, letters, 0:9, "+", "/")
    pad <- (3 - length(raw) %% 3) %% 3
    b <- matrix(as.integer(c(raw, raw(pad))), 3)
    n <- b[1, ] * 65536 + b[2, ] * 256 + b[3, ]
    v <- table[rbind(n %/% 262144, (n %/% 4096) %% 64, (n %/% 64) %% 64, n %% 64) + 1]
    if (pad) v[(length(v) - pad + 1):length(v)] <- "="
    paste(v, collapse = "")
  }
  dev.list <- function() grDevices::dev.list()
  graphics.off <- function() grDevices::graphics.off()
  options(device = function(...) grDevices::png(plots, width = 800, height = 600, ...), warn = 1)
  world <- globalenv()
  count <- 0
  run <- function(seq, words) {
    count <<- count + 1
    send(sprintf("{\"t\":\"begun\",\"n\":\"%s\",\"count\":%d}", seq, count))
    code <- decode(words[1])
    before <- list()
    if (length(words) > 2) for (i in base::seq(2, length(words), 2)) {
      name <- decode(words[i])
      before[[name]] <- Sys.getenv(name, unset = NA)
      do.call(Sys.setenv, stats::setNames(list(decode(words[i + 1])), name))
    }
    tryCatch({
      exprs <- parse(text = code, keep.source = TRUE)
      last <- NULL
      for (i in seq_along(exprs)) {
        value <- withVisible(eval(exprs[[i]], world))
        if (i == length(exprs)) last <- value
        else if (value$visible) print(value$value)
      }
      if (!is.null(last) && last$visible) {
        lines <- utils::capture.output(print(last$value))
        if (length(lines)) shown(seq, TRUE, "text/plain", text(lines))
      }
    }, error = function(e) {
      flush(stdout())
      send(sprintf("{\"t\":\"error\",\"n\":\"%s\",\"name\":%s,\"value\":%s,\"traceback\":%s}", seq, text(class(e)[1]),
        text(substr(conditionMessage(e), 1, 10000)), text(substr(paste0("Error in ", paste(deparse(conditionCall(e)), collapse = " "), ": ", conditionMessage(e)), 1, 20000))))
    }, interrupt = function(e) {
      send(sprintf("{\"t\":\"error\",\"n\":\"%s\",\"name\":\"Interrupted\",\"value\":\"the cell was interrupted\",\"traceback\":\"\"}", seq))
    })
    try(pictures(seq), silent = TRUE)
    for (name in names(before)) {
      if (is.na(before[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, stats::setNames(list(before[[name]]), name))
    }
  }
  both <- function(message) {
    flush(stdout())
    send(message)
    send(message, bad)
  }
  both("{\"t\":\"ready\",\"n\":\"0\"}")
  repeat {
    line <- tryCatch(readLines(input, 1), interrupt = function(e) NA)
    if (length(line) == 0) break
    if (is.na(line)) next
    words <- strsplit(line, " ", fixed = TRUE)[[1]]
    if (words[1] == "run") tryCatch(run(words[2], substring(words[-(1:2)], 2)), interrupt = function(e) NULL)
    both(sprintf("{\"t\":\"end\",\"n\":\"%s\"}", words[2]))
  }
  quit("no")
})
