// Package child runs in the process of one simulated computer. Package parent starts that
// process.
package child
