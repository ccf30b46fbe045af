#include "tcp_world.hpp"

#include <thread>

namespace dtrain::comm {

TcpWorld::TcpWorld(int ranks, EndpointOptions options, std::uint64_t generation) {
  if (options.secret.empty()) options.secret = "the token of this job";
  for (int rank = 0; rank < ranks; ++rank) {
    endpoints.push_back(std::make_unique<Endpoint>(options));
    plan.ranks.push_back(endpoints.back()->address());
  }
  if (ranks > 0) communicators = connect(generation);
}

TcpWorld::TcpWorld(const std::vector<std::string>& addresses, EndpointOptions options) : TcpWorld(0) {
  options.secret = "the token of this job";
  for (const std::string& address : addresses) {
    options.bind_address = address;
    endpoints.push_back(std::make_unique<Endpoint>(options));
    plan.ranks.push_back(endpoints.back()->address());
  }
  communicators = connect(1);
}

std::vector<std::unique_ptr<Communicator>> TcpWorld::connect(std::uint64_t generation) {
  std::vector<std::unique_ptr<Communicator>> made(endpoints.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    threads.emplace_back([&, rank] {
      MeshPlan mine = plan;
      mine.generation = generation;
      mine.rank = static_cast<int>(rank);
      made[rank] = endpoints[rank]->connect(mine, std::chrono::seconds(120));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return made;
}

}  // namespace dtrain::comm
