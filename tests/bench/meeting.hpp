// How the ranks of a benchmark, each a process with an address of its own, find each other's ports: by files in a
// folder.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm {

// Appears whole: it is renamed to its name.
inline void publish(const std::string& name, const PeerAddress& address) {
  std::ofstream(name + ".new") << address.address << ' ' << address.port << '\n';
  std::rename((name + ".new").c_str(), name.c_str());
}

inline PeerAddress await(const std::string& name) {
  PeerAddress address;
  while (!(std::ifstream(name) >> address.address >> address.port)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return address;
}

inline MeshPlan meet(const Endpoint& endpoint, const std::string& folder, int rank, int ranks) {
  publish(fmt::format("{}/{}", folder, rank), endpoint.address());
  MeshPlan plan{.generation = 1, .rank = rank, .ranks = {}};
  for (int peer = 0; peer < ranks; ++peer) plan.ranks.push_back(await(fmt::format("{}/{}", folder, peer)));
  return plan;
}

}  // namespace dtrain::comm
