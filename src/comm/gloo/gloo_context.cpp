#include "gloo_context.hpp"

#include <fmt/format.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/socket.h>

#include <map>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

// A store in which setting a key is a collective: every rank sets its own, and has those of all.
class GatheringStore final : public ::gloo::rendezvous::Store {
 public:
  explicit GatheringStore(Communicator& mesh) : mesh_(mesh) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::string mine = key + '\n' + std::string(data.begin(), data.end());
    for (const std::string& entry : mesh_.all_gather(bytes_of(mine))) {
      const std::size_t end = std::min(entry.find('\n'), entry.size());
      entries_[entry.substr(0, end)] = entry.substr(std::min(end + 1, entry.size()));
    }
  }
  std::vector<char> get(const std::string& key) override {
    wait({key});
    const std::string& data = entries_[key];
    return {data.begin(), data.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!entries_.contains(key)) throw PeerLost("no rank told its Gloo address as " + key);
    }
  }

 private:
  Communicator& mesh_;
  std::map<std::string, std::string> entries_;
};

}  // namespace

std::shared_ptr<::gloo::Context> connect_gloo(Communicator& mesh, const std::string& address,
                                              std::chrono::milliseconds deadline) {
  // Gloo waits five times its time-out for a first connection.
  constexpr int kConnectFactor = 5;
  ::gloo::transport::tcp::attr attr;
  attr.hostname = address;
  attr.ai_family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  try {
    std::shared_ptr<::gloo::transport::Device> device = ::gloo::transport::tcp::CreateDevice(attr);
    const auto context = std::make_shared<::gloo::rendezvous::Context>(mesh.rank(), mesh.size());
    context->setTimeout(deadline / kConnectFactor);
    GatheringStore store(mesh);
    context->connectFullMesh(store, device);
    return context;
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost(fmt::format("Gloo could not connect on {}: {}", address, error.what()));
  }
}

}  // namespace dtrain::comm
