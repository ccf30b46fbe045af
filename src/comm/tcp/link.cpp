#include "link.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::size_t kFramesPerWrite = 4;
constexpr std::size_t kLongestReason = 1000;

}  // namespace

Link::Link(FileDescriptor socket, int peer, std::string name)
    : socket_(std::move(socket)), peer_(peer), name_(std::move(name)) {}

void Link::note_events(std::uint32_t epoll_events) {
  if (epoll_events & EPOLLIN) readable_ = true;
  if (epoll_events & EPOLLOUT) writable_ = true;
  if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = readable_ = writable_ = true;
}

void Link::end(std::string why) {
  ended_ = true;
  readable_ = writable_ = false;
  why_ended_ = std::move(why);
}

// A sum overtakes pieces: it is still in the cache, and what it completes is over for the peer.
void Link::queue(Outgoing frame) {
  auto place = output_.end();
  if (frame.header.kind == FrameKind::final) {
    const auto first = output_.begin() + (front_sent_ > 0 ? 1 : 0);
    while (place != output_.begin() && place != first && std::prev(place)->header.kind == FrameKind::piece) --place;
  }
  output_.insert(place, std::move(frame));
}

// Together with the rest of a frame's bytes the next header is read, so that a frame costs one system call.
bool Link::read(FrameSink& sink) {
  if (!readable_ || stalled_ || ended_) return false;
  std::array<iovec, 2> parts{};
  msghdr message{};
  message.msg_iov = parts.data();
  if (header_got_ == sizeof(FrameHeader) && !payload_) {
    payload_ = sink.place(peer_, incoming_);
    if (!payload_) {
      stalled_ = true;
      return false;
    }
    DTRAIN_CHECK(payload_->size() == incoming_.bytes, "a frame was given room of another size");
    if (payload_->empty()) {
      complete(sink);
      return true;
    }
  }
  FrameHeader next;
  if (payload_) {
    parts[0] = {payload_->data() + payload_got_, payload_->size() - payload_got_};
    parts[1] = {&next, sizeof next};
    message.msg_iovlen = 2;
  } else {
    parts[0] = {reinterpret_cast<std::byte*>(&incoming_) + header_got_, sizeof incoming_ - header_got_};
    message.msg_iovlen = 1;
  }
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (got <= 0) return after_read(got);

  const auto bytes = static_cast<std::size_t>(got);
  const bool drained = bytes < parts[0].iov_len + parts[1].iov_len;
  if (payload_) {
    const std::size_t mine = std::min(bytes, parts[0].iov_len);
    payload_got_ += mine;
    if (payload_got_ == payload_->size()) {
      complete(sink);
      incoming_ = next;
      header_got_ = bytes - mine;
    }
  } else {
    header_got_ += bytes;
  }
  if (drained && !hung_up_) readable_ = false;  // more of it, or its end, is a new event
  return true;
}

void Link::complete(FrameSink& sink) {
  const FrameHeader header = incoming_;
  payload_.reset();
  payload_got_ = header_got_ = 0;
  sink.arrived(peer_, header);
}

bool Link::after_read(ssize_t got) {
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    readable_ = false;
    return false;
  }
  end(got == 0 ? name_ + " has closed its connection"
               : "the connection to " + name_ + " broke: " + std::strerror(errno));
  return true;
}

bool Link::write(FrameSink& sink) {
  if (!writable_ || ended_ || output_.empty()) return false;
  std::array<iovec, 2 * kFramesPerWrite> parts;
  std::size_t count = 0, skip = front_sent_;
  const auto append = [&](const void* data, std::size_t size) {
    if (skip >= size) {
      skip -= size;
    } else {
      parts[count++] = {static_cast<std::byte*>(const_cast<void*>(data)) + skip, size - skip};
      skip = 0;
    }
  };
  for (std::size_t i = 0; i < std::min(output_.size(), kFramesPerWrite); ++i) {
    append(&output_[i].header, sizeof(FrameHeader));
    append(output_[i].bytes, output_[i].header.bytes);
  }
  sink.before_write();
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno == EINTR) return true;
    writable_ = false;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    write_error_ = "the connection to " + name_ + " broke: " + std::strerror(errno);
    hung_up_ = readable_ = true;  // what the peer said before is still there to read
    return true;
  }
  front_sent_ += static_cast<std::size_t>(sent);
  while (!output_.empty() && front_sent_ >= sizeof(FrameHeader) + output_.front().header.bytes) {
    const FrameHeader header = output_.front().header;
    front_sent_ -= sizeof(FrameHeader) + header.bytes;
    output_.pop_front();
    sink.gone(header);
  }
  return true;
}

void Link::give_up(const std::string& reason) noexcept {
  if (front_sent_ == 0 && !ended_ && socket_) {
    FrameHeader header{.kind = FrameKind::lost};
    header.bytes = std::min(reason.size(), kLongestReason);
    std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{const_cast<char*>(reason.data()), header.bytes}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  output_.clear();
  ended_ = true;
  socket_ = FileDescriptor();
}

}  // namespace dtrain::comm::tcp
