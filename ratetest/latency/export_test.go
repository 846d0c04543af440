package latency

const Longest = longest
