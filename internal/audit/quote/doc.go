// Package quote gets quotes of confidential machines and verifies them: signed reports of the hardware (AMD SEV-SNP,
// Intel TDX) that some bytes were chosen inside of a machine with a measurement.
//
// A quote is verified without a network: its certificates must lead to the root of the vendor, which the libraries
// have. Whether a certificate was revoked and whether the firmware is up to date is not looked at.
package quote
