// One connection to a peer: reads frames to where they belong, writes frames from where they lie. Never blocks. Used
// by the exchange's thread alone.
//
// Between processes of one machine, each side first sends the file of its shared memory. A large frame that lies there
// is then lent: its header says where it is, the peer reads it in place or copies it, and says so by a frame `taken`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/net/stream.hpp>

#include "shared_memory.hpp"
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
  // Offers a lent frame. false: the sink places it, or cannot take it yet.
  virtual bool borrow(int peer, const FrameHeader& header, const std::byte* bytes) = 0;
  virtual void give_back(int peer) = 0;              // a lent frame was placed, and is no longer read
  virtual void gone(const FrameHeader& header) = 0;  // handed to the kernel; a lent one: given back
  virtual void before_write() = 0;
};

class Link {
 public:
  Link() = default;
  // `name` is for messages. What passes is added to `traffic`. Frames in `memory` are lent to peers of this machine;
  // nullptr: none. Only the first connection to a peer takes frames that stay in order.
  Link(net::Stream stream, int peer, std::string name, bool is_first, std::shared_ptr<TrafficCount> traffic,
       std::shared_ptr<SharedMemory> memory);

  int socket() const { return stream_.socket(); }
  const std::string& name() const { return name_; }
  bool has_ended() const { return ended_; }     // the peer will say nothing more
  bool has_left() const { return left_; }       // it ended, by a peer that closed it and said nothing
  bool is_stalled() const { return stalled_; }  // its next frame has no place yet
  const std::string& why_ended() const { return why_ended_; }
  // Frames that the kernel has not got, or that the peer has not given back.
  bool has_output() const { return has_unsent() || !lent_.empty(); }
  // Nothing can be sent any more, and all that the peer said and that has a place was read.
  bool cannot_send() const { return !write_error_.empty() && !(readable_ && !stalled_); }
  const std::string& write_error() const { return write_error_; }
  // The less, the sooner another frame leaves: bytes that the kernel has not got, and then all that it ever got.
  std::pair<std::uint64_t, std::uint64_t> load() const { return {unsent_, sent_}; }

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
  bool has_unsent() const { return !output_.empty() || stream_.unsent() > 0; }
  bool receive_memory();
  std::optional<std::span<std::byte>> place(FrameSink& sink);
  bool read_lent(FrameSink& sink);
  void take_back(FrameSink& sink);
  void complete(FrameSink& sink);
  bool after_read(const net::Moved& moved);
  std::string why(const net::Moved& moved) const;
  void release_sent(FrameSink& sink);

  net::Stream stream_;
  int peer_ = -1;
  std::string name_;
  bool is_first_ = true;
  std::shared_ptr<TrafficCount> traffic_;
  bool readable_ = true, writable_ = true, hung_up_ = false, stalled_ = false, ended_ = false, left_ = false;
  std::string why_ended_, write_error_;

  std::shared_ptr<SharedMemory> own_;  // nullptr: nothing is lent
  std::unique_ptr<PeerMemory> theirs_;
  bool awaits_memory_ = false;  // the peer's first byte, with its file
  std::deque<FrameHeader> lent_;

  FrameHeader incoming_;
  std::size_t header_got_ = 0, payload_got_ = 0;
  std::optional<std::span<std::byte>> payload_;
  std::string last_;  // of the frame `lost`: why

  std::deque<Outgoing> output_;
  std::size_t front_sent_ = 0;  // bytes of the first frames, headers included, that the stream took over
  std::uint64_t unsent_ = 0, sent_ = 0;
};

}  // namespace dtrain::comm::tcp
