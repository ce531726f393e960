// Package child is the process that one simulated computer runs in. Package confined
// starts it.
package child
