// The connection to one peer: reads frames to where they belong, writes frames from where they lie. Never blocks. Used
// by the exchange's thread alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/net/stream.hpp>

#include "wire.hpp"

namespace dtrain::comm::tcp {

// Of many links; each adds on its own thread.
struct TrafficCount {
  std::atomic<std::uint64_t> sent{0}, received{0};
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Where the frame's bytes go, header.bytes of them; nullopt: later. Throws PeerLost for a frame that cannot be.
  virtual std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) = 0;
  virtual void arrived(int peer, const FrameHeader& header) = 0;
  virtual void gone(const FrameHeader& header) = 0;  // handed to the kernel
  virtual void before_write() = 0;
};

class Link {
 public:
  Link() = default;
  // `name` is for messages. What passes is added to `traffic`.
  Link(net::Stream stream, int peer, std::string name, std::shared_ptr<TrafficCount> traffic);

  int socket() const { return stream_.socket(); }
  const std::string& name() const { return name_; }
  bool has_ended() const { return ended_; }  // the peer will say nothing more
  const std::string& why_ended() const { return why_ended_; }
  bool has_output() const { return !output_.empty() || stream_.unsent() > 0; }
  // Nothing can be sent any more, and all that the peer said and that has a place was read.
  bool cannot_send() const { return !write_error_.empty() && !(readable_ && !stalled_); }
  const std::string& write_error() const { return write_error_; }

  void queue(Outgoing frame);
  // Each does one turn of work and returns whether another may help.
  bool read(FrameSink& sink);
  bool write(FrameSink& sink);
  void resume() { stalled_ = false; }  // frames that had no place may have one now
  void note_events(std::uint32_t epoll_events);
  void end(std::string why);  // nothing more is read or written
  // Comes last: sends the reason, if a frame fits in now, and closes.
  void give_up(const std::string& reason) noexcept;

 private:
  void complete(FrameSink& sink);
  bool after_read(const net::Moved& moved);
  std::string why(const net::Moved& moved) const;
  std::ptrdiff_t begun() const;
  void release_sent(FrameSink& sink);

  net::Stream stream_;
  int peer_ = -1;
  std::string name_;
  std::shared_ptr<TrafficCount> traffic_;
  bool readable_ = true, writable_ = true, hung_up_ = false, stalled_ = false, ended_ = false;
  std::string why_ended_, write_error_;

  FrameHeader incoming_;
  std::size_t header_got_ = 0, payload_got_ = 0;
  std::optional<std::span<std::byte>> payload_;

  std::deque<Outgoing> output_;
  std::size_t front_sent_ = 0;  // bytes of the first frames, headers included, that the stream took over
};

}  // namespace dtrain::comm::tcp
