#include "link.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>

#include "sockets.hpp"

namespace dtrain::comm::tcp {
namespace {

constexpr std::size_t kFramesPerWrite = 4;
constexpr std::size_t kLongestReason = 1000, kLongestLast = 4096;  // bytes, of our own and of a peer's

// The bytes that follow a header on the connection.
std::size_t bytes_behind(const FrameHeader& header) { return header.lent_at > 0 ? 0 : header.bytes; }

}  // namespace

Link::Link(net::Stream stream, int peer, std::string name, bool is_first, std::shared_ptr<TrafficCount> traffic,
           std::shared_ptr<SharedMemory> memory)
    : stream_(std::move(stream)),
      peer_(peer),
      name_(std::move(name)),
      is_first_(is_first),
      traffic_(std::move(traffic)) {
  if (!is_near(stream_.socket())) return;
  awaits_memory_ = true;
  // The kernel may refuse a file, for many are on their way; the byte that says so goes all the same. A connection that
  // is broken already shows when it is read.
  if (memory && send_file(stream_.socket(), memory->file())) {
    own_ = std::move(memory);
  } else {
    send_file(stream_.socket(), -1);
  }
}

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

void Link::queue(Outgoing frame) {
  if (own_ && frame.header.bytes >= kLeastLent && frame.owned.empty()) {
    const auto offset = own_->offset_of(frame.bytes, frame.header.bytes);
    if (offset) frame.header.lent_at = *offset + 1;
  }
  unsent_ += sizeof(FrameHeader) + bytes_behind(frame.header);
  output_.push_back(std::move(frame));
}

// Together with the rest of a frame's bytes the next header is read, so that a frame costs one system call.
bool Link::read(FrameSink& sink) {
  if (!readable_ || stalled_ || ended_) return false;
  if (awaits_memory_) return receive_memory();
  std::array<iovec, 2> parts{};
  std::size_t count = 1;
  if (header_got_ == sizeof(FrameHeader) && !payload_) {
    if (incoming_.kind == FrameKind::taken) {
      take_back(sink);
      return true;
    }
    if (incoming_.lent_at > 0) return read_lent(sink);
    payload_ = place(sink);
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
    count = 2;
  } else {
    parts[0] = {reinterpret_cast<std::byte*>(&incoming_) + header_got_, sizeof incoming_ - header_got_};
  }
  const net::Moved moved = stream_.read({parts.data(), count});
  if (moved.bytes == 0) return after_read(moved);

  const std::size_t bytes = moved.bytes;
  traffic_->received.fetch_add(bytes, std::memory_order_relaxed);
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
  // More of it, or its end, is a new event.
  if (moved.state == net::Moved::State::blocked && !hung_up_) readable_ = false;
  return true;
}

bool Link::receive_memory() {
  ReceivedFile received = receive_file(stream_.socket());
  if (received.state == ReceivedFile::State::not_yet) {
    readable_ = false;
    return false;
  }
  if (received.state == ReceivedFile::State::ended) {
    left_ = true;
    end(name_ + " has closed its connection");
    return true;
  }
  if (received.state == ReceivedFile::State::no_descriptor) {
    throw PeerLost(name_ + " shares its memory, and no file descriptor is free for it here (ulimit -n)");
  }
  awaits_memory_ = false;
  if (received.file) theirs_ = std::make_unique<PeerMemory>(std::move(received.file), name_);
  return true;
}

// Where the bytes that follow the header go; nullopt: later.
std::optional<std::span<std::byte>> Link::place(FrameSink& sink) {
  if (incoming_.kind == FrameKind::lost && incoming_.bytes <= kLongestLast) {
    last_.resize(incoming_.bytes);
    return std::as_writable_bytes(std::span(last_));
  }
  if (incoming_.kind == FrameKind::lost || !(is_first_ || may_overtake(incoming_.kind))) {
    throw PeerLost(name_ + " sent a frame that cannot be");
  }
  return sink.place(peer_, incoming_);
}

bool Link::read_lent(FrameSink& sink) {
  const std::uint64_t offset = incoming_.lent_at - 1;
  const std::byte* const bytes = theirs_ ? theirs_->look(offset, incoming_.bytes) : nullptr;
  if (bytes == nullptr || !sink.borrow(peer_, incoming_, bytes)) {
    const auto room = place(sink);
    if (!room) {
      stalled_ = true;
      return false;
    }
    DTRAIN_CHECK(room->size() == incoming_.bytes, "a frame was given room of another size");
    if (!theirs_ || !theirs_->read(offset, *room)) throw PeerLost(name_ + " lent memory that it does not share");
    complete(sink);
    sink.give_back(peer_);
  }
  header_got_ = 0;
  traffic_->received.fetch_add(incoming_.bytes, std::memory_order_relaxed);
  return true;
}

void Link::take_back(FrameSink& sink) {
  if (lent_.empty()) throw PeerLost(name_ + " gave back what was not lent to it");
  const FrameHeader header = lent_.front();
  lent_.pop_front();
  header_got_ = 0;
  sink.gone(header);
}

void Link::complete(FrameSink& sink) {
  const FrameHeader header = incoming_;
  payload_.reset();
  payload_got_ = header_got_ = 0;
  if (header.kind == FrameKind::lost) return end(name_ + " gave up: " + last_);
  sink.arrived(peer_, header);
}

bool Link::after_read(const net::Moved& moved) {
  if (moved.state == net::Moved::State::open) return true;
  if (moved.state == net::Moved::State::blocked) {
    readable_ = false;
    return false;
  }
  left_ = moved.state == net::Moved::State::ended && header_got_ == 0 && !payload_;  // nobody leaves inside a frame
  end(why(moved));
  return true;
}

std::string Link::why(const net::Moved& moved) const {
  return moved.state == net::Moved::State::ended ? name_ + " has closed its connection"
                                                 : "the connection to " + name_ + " broke: " + moved.error;
}

bool Link::write(FrameSink& sink) {
  if (!writable_ || ended_ || !has_unsent()) return false;
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
    append(output_[i].bytes, bytes_behind(output_[i].header));
  }
  sink.before_write();
  const net::Moved moved = count == 0 ? stream_.flush() : stream_.write({parts.data(), count});
  front_sent_ += moved.bytes;
  unsent_ -= moved.bytes;
  sent_ += moved.bytes;
  traffic_->sent.fetch_add(moved.bytes, std::memory_order_relaxed);
  release_sent(sink);
  if (moved.state == net::Moved::State::open) return true;
  writable_ = false;
  if (moved.state == net::Moved::State::blocked) return moved.bytes > 0;
  write_error_ = why(moved);
  hung_up_ = readable_ = true;  // what the peer said before is still there to read
  return true;
}

// Under TLS the bytes that were taken over may wait for the kernel; then the frame counts as gone with the last of
// them.
void Link::release_sent(FrameSink& sink) {
  if (stream_.unsent() > 0) return;
  while (!output_.empty() && front_sent_ >= sizeof(FrameHeader) + bytes_behind(output_.front().header)) {
    const FrameHeader header = output_.front().header;
    front_sent_ -= sizeof(FrameHeader) + bytes_behind(header);
    output_.pop_front();
    if (header.lent_at == 0) {
      sink.gone(header);
    } else {
      lent_.push_back(header);
      traffic_->sent.fetch_add(header.bytes, std::memory_order_relaxed);
    }
  }
}

void Link::give_up(const std::string& reason) noexcept {
  if (own_) own_->keep_all();
  if (front_sent_ == 0 && !ended_ && stream_) {
    FrameHeader header{.kind = FrameKind::lost};
    header.bytes = std::min(reason.size(), kLongestReason);
    std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{const_cast<char*>(reason.data()), header.bytes}};
    stream_.write(parts);
  }
  output_.clear();
  unsent_ = 0;
  lent_.clear();
  ended_ = true;
  stream_ = net::Stream();
}

}  // namespace dtrain::comm::tcp
