package service

// What businesses run on.
var businesses = []*tableRow{}
