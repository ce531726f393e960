package main

const renameat2 = 316
