// Package sqlite is the tool sqlite3. The engine is SQLite itself, translated to
// Go; a database is read from the computer's files into the engine's memory,
// and written back when a script has changed it. The engine opens no file:
// ATTACH of files and VACUUM INTO are refused by its own limit, extensions
// cannot be loaded, and what is temporary is in memory. What a statement may ask of the engine itself, by a pragma, the
// engine asks this package about; the text of statements is read here only in order to cut it.
//
// So a database is bounded by the limit "database", and two tasks that write
// to the same one at the same time do not see each other: the last wins.
package sqlite
