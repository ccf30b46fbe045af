/* Limits what each TCP connection of a program sends to PACED_FLOWS bytes a second, as networks do that limit a flow:
 * to be preloaded (LD_PRELOAD). The kernel spaces the segments itself, so no queueing discipline is needed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static void pace(int fd) {
  const char *text = getenv("PACED_FLOWS");
  const int error = errno;
  unsigned int rate = text ? (unsigned int)atol(text) : 0;
  if (rate > 0) setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
  errno = error;
}

int socket(int domain, int type, int protocol) {
  int (*next)(int, int, int) = dlsym(RTLD_NEXT, "socket");
  const int fd = next(domain, type, protocol);
  if (fd >= 0 && domain != AF_UNIX) pace(fd); /* a listener's connections inherit it */
  return fd;
}
