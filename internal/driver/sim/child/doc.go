// Package child runs in the process of one simulated computer. Package confined starts that
// process.
package child
