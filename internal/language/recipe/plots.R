# What is drawn without a device of the program's own goes to the directory of artifacts.
options(device = function(...) grDevices::png(file.path(Sys.getenv("PADDOCK_ARTIFACTS"), "plot-%d.png"), ...))
