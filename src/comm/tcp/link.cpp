#include "link.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::size_t kFramesPerWrite = 4;
constexpr std::size_t kLongestReason = 1000;

}  // namespace

Link::Link(net::Stream stream, int peer, std::string name, std::shared_ptr<TrafficCount> traffic)
    : stream_(std::move(stream)), peer_(peer), name_(std::move(name)), traffic_(std::move(traffic)) {
  stream_.expect_bulk();
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
  auto place = output_.end();
  const auto first = output_.begin() + begun();
  while (place != first && overtakes(frame.header.kind, std::prev(place)->header.kind)) --place;
  output_.insert(place, std::move(frame));
}

// Frames of which something was handed over.
std::ptrdiff_t Link::begun() const {
  std::ptrdiff_t count = 0;
  for (std::size_t end = 0; end < front_sent_; ++count) {
    end += sizeof(FrameHeader) + output_[static_cast<std::size_t>(count)].header.bytes;
  }
  return count;
}

// Together with the rest of a frame's bytes the next header is read, so that a frame costs one system call.
bool Link::read(FrameSink& sink) {
  if (!readable_ || stalled_ || ended_) return false;
  std::array<iovec, 2> parts{};
  std::size_t count = 1;
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

void Link::complete(FrameSink& sink) {
  const FrameHeader header = incoming_;
  payload_.reset();
  payload_got_ = header_got_ = 0;
  sink.arrived(peer_, header);
}

bool Link::after_read(const net::Moved& moved) {
  if (moved.state == net::Moved::State::open) return true;
  if (moved.state == net::Moved::State::blocked) {
    readable_ = false;
    return false;
  }
  end(why(moved));
  return true;
}

std::string Link::why(const net::Moved& moved) const {
  return moved.state == net::Moved::State::ended ? name_ + " has closed its connection"
                                                 : "the connection to " + name_ + " broke: " + moved.error;
}

bool Link::write(FrameSink& sink) {
  if (!writable_ || ended_ || !has_output()) return false;
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
  const net::Moved moved = count == 0 ? stream_.flush() : stream_.write({parts.data(), count});
  front_sent_ += moved.bytes;
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
  while (!output_.empty() && front_sent_ >= sizeof(FrameHeader) + output_.front().header.bytes) {
    const FrameHeader header = output_.front().header;
    front_sent_ -= sizeof(FrameHeader) + header.bytes;
    output_.pop_front();
    sink.gone(header);
  }
}

void Link::give_up(const std::string& reason) noexcept {
  if (front_sent_ == 0 && !ended_ && stream_) {
    FrameHeader header{.kind = FrameKind::lost};
    header.bytes = std::min(reason.size(), kLongestReason);
    std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{const_cast<char*>(reason.data()), header.bytes}};
    stream_.write(parts);
  }
  output_.clear();
  ended_ = true;
  stream_ = net::Stream();
}

}  // namespace dtrain::comm::tcp
