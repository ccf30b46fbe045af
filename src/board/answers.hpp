// The answers to the page's questions, as JSON, text or pictures. They may take a while; any thread may ask.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dtrain/net/http_server.hpp>
#include <dtrain/net/objects.hpp>

#include "catalog.hpp"
#include "cluster_watch.hpp"
#include "target.hpp"

namespace dtrain::board {

struct BoardFacts {
  std::string title;                 // of the machine
  std::vector<std::string> folders;  // that are watched
  bool may_act = false;
  std::shared_ptr<net::ObjectStore> store;  // null: no folder is far away
  ClusterWatch* clusters = nullptr;         // borrowed; null: there are none
};

class Answers {
 public:
  // Borrows the catalog.
  Answers(const Catalog& catalog, BoardFacts facts) : catalog_(catalog), facts_(std::move(facts)) {}

  // A question below /api/. Never throws: what goes wrong is a response with {"error", "hint"}.
  net::HttpResponse answer(const net::HttpRequest& request, const Target& target) const;

 private:
  net::HttpResponse find_answer(const net::HttpRequest& request, const Target& target) const;

  const Catalog& catalog_;
  const BoardFacts facts_;
};

}  // namespace dtrain::board
