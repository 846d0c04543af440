// A program that this is preloaded into takes the time from gettimeofday with so many seconds added as the file that CLOCK_OFFSET names says. Redis
// takes TIME from it. Debian's faketime replaces more than that, and Redis does not start under it.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
	if (syscall(SYS_gettimeofday, now, zone) != 0)
		return -1;
	double by = 0;
	FILE *f = fopen(getenv("CLOCK_OFFSET"), "r");
	if (f != NULL) {
		if (fscanf(f, "%lf", &by) != 1)
			by = 0;
		fclose(f);
	}
	long long micros = (long long)now->tv_sec * 1000000 + now->tv_usec + (long long)(by * 1e6);
	now->tv_sec = micros / 1000000;
	now->tv_usec = micros % 1000000;
	return 0;
}
