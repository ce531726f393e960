package main

const renameat2 = 276
