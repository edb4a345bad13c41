// standin_nccl_link.c - links between ranks in different processes of one machine, over local sockets.
//
// A rank listens at a name made of the communicator's id and its number, in Linux's abstract namespace, until
// all are there; the higher of two ranks connects. Nothing blocks and no thread reads: whoever calls the
// stand-in looks at the sockets, so both ends always take in what the other sends.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/standin/standin_nccl.h"

enum kind { HELLO = 1, READY, DATA, BYE };

struct frame {
  int32_t kind, rank, ranks, device;
  int64_t host, ticket, bytes; // bytes: what follows
};

struct buffer {
  unsigned char *at;
  size_t used, room;
};

struct link {
  int fd;
  bool greeted, ended, said_bye;
  int64_t host;
  int device;
  struct buffer out, in;
  int64_t *ready; // tickets that the peer is ready to receive
  int ready_count, ready_room;
};

static void append(struct buffer *buffer, const void *from, size_t bytes) {
  if (buffer->used + bytes > buffer->room) {
    buffer->room = 2 * (buffer->used + bytes);
    buffer->at = realloc(buffer->at, buffer->room);
    if (!buffer->at) abort();
  }
  memcpy(buffer->at + buffer->used, from, bytes);
  buffer->used += bytes;
}

static void take(struct buffer *buffer, size_t bytes) {
  buffer->used -= bytes;
  memmove(buffer->at, buffer->at + bytes, buffer->used);
}

static void flush(struct link *link) {
  while (link->out.used && !link->ended) {
    ssize_t sent = send(link->fd, link->out.at, link->out.used, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
      take(&link->out, (size_t)sent);
    else if (errno != EINTR)
      return;
  }
}

static void say(struct link *link, struct frame frame, const void *data) {
  append(&link->out, &frame, sizeof frame);
  if (frame.bytes) append(&link->out, data, (size_t)frame.bytes);
  flush(link);
}

static struct frame hello(const struct ncclComm *c) {
  return (struct frame){.kind = HELLO,
                        .rank = c->rank,
                        .ranks = c->clique->ranks,
                        .device = zb_standin_gpu(c->device),
                        .host = c->host};
}

static void greet(struct link *link, const struct frame *frame) {
  link->greeted = true;
  link->host = frame->host;
  link->device = frame->device;
}

static struct link *new_link(int fd) {
  struct link *link = zb_standin_new(sizeof *link);
  link->fd = fd;
  return link;
}

static void free_link(struct link *link) {
  close(link->fd);
  free(link->out.at);
  free(link->in.at);
  free(link->ready);
  free(link);
}

// Coming together

static struct sockaddr_un name_of(const struct ncclComm *c, int rank, socklen_t *size) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int length =
      snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%.80s/%d", c->clique->id.internal, rank);
  *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  return name;
}

static int local_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

static void listen_once(struct ncclComm *c) {
  if (c->listener >= 0) return;
  socklen_t size;
  struct sockaddr_un name = name_of(c, c->rank, &size);
  c->listener = local_socket();
  if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&name, size) || listen(c->listener, 64)) {
    perror("standin: a local socket");
    abort();
  }
}

static void connect_to(struct ncclComm *c, int rank) {
  socklen_t size;
  struct sockaddr_un name = name_of(c, rank, &size);
  int fd = local_socket();
  if (fd < 0 || connect(fd, (struct sockaddr *)&name, size)) {
    if (fd >= 0) close(fd);
    return;
  }
  c->link[rank] = new_link(fd);
  say(c->link[rank], hello(c), NULL);
}

// Who connects says hello at once, so this waits only for one that was stopped in between.
static void welcome(struct ncclComm *c) {
  int fd;
  while ((fd = accept(c->listener, NULL, NULL)) >= 0) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    struct frame frame;
    bool said = poll(&readable, 1, 1000) == 1 && recv(fd, &frame, sizeof frame, MSG_WAITALL) == sizeof frame;
    bool sound = said && frame.kind == HELLO && frame.rank >= 0 && frame.rank < c->clique->ranks &&
                 !c->link[frame.rank];
    if (!sound) {
      close(fd);
      continue;
    }
    c->link[frame.rank] = new_link(fd);
    greet(c->link[frame.rank], &frame);
    say(c->link[frame.rank], hello(c), NULL);
  }
}

bool zb_standin_link_open(struct ncclComm *c) {
  c->linked = true;
  listen_once(c);
  welcome(c);
  zb_standin_link_progress(c);
  bool all = true;
  for (int r = 0; r < c->clique->ranks; r++) {
    if (c->clique->member[r]) continue;
    if (r < c->rank && !c->link[r]) connect_to(c, r);
    all = all && c->link[r] && c->link[r]->greeted;
  }
  if (all) {
    close(c->listener);
    c->listener = -1;
  }
  return all;
}

void zb_standin_link_where(const struct ncclComm *c, int rank, int64_t *host, int *device) {
  *host = c->link[rank]->host;
  *device = c->link[rank]->device;
}

// Messages

bool zb_standin_link_says_ready(struct ncclComm *c, int peer, int64_t ticket) {
  struct link *link = c->link[peer];
  for (int k = 0; link && k < link->ready_count; k++)
    if (link->ready[k] == ticket) {
      link->ready[k] = link->ready[--link->ready_count];
      return true;
    }
  return false;
}

void zb_standin_link_ready(struct ncclComm *c, const struct message *message) {
  struct link *link = c->link[message->peer];
  if (link) say(link, (struct frame){.kind = READY, .ticket = message->ticket}, NULL);
}

void zb_standin_link_send(struct ncclComm *c, const struct message *message) {
  struct link *link = c->link[message->peer];
  struct frame frame = {.kind = DATA, .ticket = message->ticket, .bytes = message->bytes};
  if (link) say(link, frame, message->at);
}

static void hear_ready(struct ncclComm *c, int peer, int64_t ticket) {
  struct message *waiting = zb_standin_message_waiting(c, true, peer, ticket);
  if (waiting && !c->still && !zb_standin_device[c->device].gone) {
    zb_standin_message_to_link(waiting);
    return;
  }
  struct link *link = c->link[peer];
  if (link->ready_count == link->ready_room) {
    link->ready_room = link->ready_room ? 2 * link->ready_room : 16;
    link->ready = realloc(link->ready, (size_t)link->ready_room * sizeof *link->ready);
    if (!link->ready) abort();
  }
  link->ready[link->ready_count++] = ticket;
}

static void hear_data(struct ncclComm *c, int peer, const struct frame *frame, const unsigned char *data) {
  struct message *waiting = zb_standin_message_waiting(c, false, peer, frame->ticket);
  if (!waiting) return; // it was ended meanwhile
  if (waiting->bytes != frame->bytes)
    zb_standin_report("ncclSend of rank %d sends %lld bytes, ncclRecv of rank %d takes %lld", peer,
                      (long long)frame->bytes, c->rank, (long long)waiting->bytes);
  else
    waiting->content = memcpy(zb_standin_new((size_t)frame->bytes), data, (size_t)frame->bytes);
  zb_standin_message_meet(waiting);
}

static void hear(struct ncclComm *c, int peer) {
  struct link *link = c->link[peer];
  struct frame frame;
  while (link->in.used >= sizeof frame) {
    memcpy(&frame, link->in.at, sizeof frame);
    if (link->in.used < sizeof frame + (size_t)frame.bytes) return;
    if (frame.kind == HELLO) greet(link, &frame);
    if (frame.kind == READY) hear_ready(c, peer, frame.ticket);
    if (frame.kind == DATA) hear_data(c, peer, &frame, link->in.at + sizeof frame);
    if (frame.kind == BYE) link->said_bye = true;
    take(&link->in, sizeof frame + (size_t)frame.bytes);
  }
}

void zb_standin_link_progress(struct ncclComm *c) {
  unsigned char data[65536];
  for (int r = 0; r < c->clique->ranks; r++) {
    struct link *link = c->link[r];
    if (!link || link->ended) continue;
    flush(link);
    ssize_t came;
    while ((came = recv(link->fd, data, sizeof data, MSG_DONTWAIT)) > 0)
      append(&link->in, data, (size_t)came);
    bool over = came == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    hear(c, r);
    link->ended = over;
    if (over && !link->said_bye && !c->error)
      c->error = zb_standin_nccl_fail(ncclRemoteError, "rank %d: rank %d is gone", c->rank, r);
  }
}

// What was sent is sent: the other end may still wait for it.
static void send_the_rest(struct link *link) {
  for (int tries = 0; link->out.used && !link->ended && tries < 100; tries++) {
    struct pollfd writable = {.fd = link->fd, .events = POLLOUT};
    poll(&writable, 1, 20);
    flush(link);
  }
}

void zb_standin_link_close(struct ncclComm *c, bool politely) {
  if (c->listener >= 0) close(c->listener);
  c->listener = -1;
  c->linked = false;
  for (int r = 0; r < c->clique->ranks; r++) {
    struct link *link = c->link[r];
    if (!link) continue;
    if (politely) {
      say(link, (struct frame){.kind = BYE}, NULL);
      send_the_rest(link);
    }
    free_link(link);
    c->link[r] = NULL;
  }
}
