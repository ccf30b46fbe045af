#include "ended.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::cluster {

std::vector<Node> take_ended(Fleet& known, const Fleet& now) {
  std::vector<Node> ended;
  for (const Node& node : now.ending) {
    const auto there = std::ranges::find(known.nodes, node.instance_id, &Node::instance_id);
    if (there == known.nodes.end()) continue;
    there->end_reason = node.end_reason;
    there->end_message = node.end_message;
    ended.push_back(std::move(*there));
    known.nodes.erase(there);
  }
  return ended;
}

void count_ended(const Node& node, bool is_new, Launched& launched) {
  if (is_new) {
    launched.got -= node.weight;
  } else if (node.base) {
    launched.wanted += node.weight;
  }
}

std::string ended_text(const Node& node) {
  // EC2's message begins with the code.
  const bool has_code = !node.end_reason.empty() && node.end_message.find(node.end_reason) == std::string::npos;
  const std::string why = has_code && !node.end_message.empty()
                              ? fmt::format("{}: {}", node.end_reason, node.end_message)
                          : node.end_message.empty() ? node.end_reason
                                                     : node.end_message;
  return fmt::format("{} ({}) has ended: {}", node.name, node.instance_id, why.empty() ? "EC2 gives no reason" : why);
}

}  // namespace dtrain::cluster
