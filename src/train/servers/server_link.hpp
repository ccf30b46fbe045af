// A worker's connections to all servers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "epoch_book.hpp"
#include "messages.hpp"
#include "shard_layout.hpp"

namespace dtrain::train {

// One thread, the trainer's. Frames arrive on the loop's thread; `mutex_` guards where they wait. Each wait calls
// `between` several times a second, and what that throws ends it. Throws PeerLost when a server is gone.
class ServerLink {
 public:
  // `layouts` must outlive this. `servers`: where the server of each shard listens.
  ServerLink(const std::vector<ShardLayout>& layouts, const std::vector<comm::PeerAddress>& servers,
             const std::string& secret, const std::string& purpose, int rank, std::function<void()> between);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;

  // The next batch of the epoch; nullopt: none is left for this worker.
  std::optional<Ticket> next(std::uint64_t vote);
  std::uint64_t batches_done() const { return batches_done_; }  // of the section by all workers, as next() heard last
  // Returns when this worker may begin its next step.
  void begin();
  // The parameters once each shard has so many updates; into the flat buffer. Returns the first shard's updates.
  std::uint64_t pull(std::uint64_t version, std::span<float> parameters);
  // Returns when all servers, and their replicas, have what this worker pushed.
  void flush();
  // Tells the first server that all servers have the gradients of the batch, and waits until that is known.
  void done(std::uint64_t number);
  // One leaf of the whole graph's contribution.
  void push(std::uint64_t number, int leaf, float learning_rate, std::span<const float> contribution);
  // Waits until all workers have finished.
  void finish();

 private:
  struct Inbox {
    std::deque<std::string> frames;
    std::optional<std::string> closed;
  };
  void ask(std::size_t server, const MessageHead& question) { channels_[server]->send(frame_of(question)); }
  std::string wait_for(std::size_t server, MessageKind kind);
  MessageHead question(MessageKind kind) const;
  std::string describe(std::size_t server, const std::string& what) const;

  const std::vector<ShardLayout>& layouts_;
  const int rank_;
  const std::function<void()> between_;
  std::vector<std::shared_ptr<net::Channel>> channels_;
  std::uint64_t batches_done_ = 0;
  std::vector<float> packed_;
  std::string frame_;  // of a pull, with what of it was not taken yet
  std::span<const float> part_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Inbox> inboxes_ DTRAIN_GUARDED_BY(mutex_);

  net::LoopThread thread_;
};

}  // namespace dtrain::train
