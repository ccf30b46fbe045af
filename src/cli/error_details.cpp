#include "error_details.hpp"

#include <dtrain/cluster/change.hpp>

namespace dtrain::cli {

Json error_details(const Error& error) {
  std::vector<std::pair<std::string, std::string>> found;
  if (const auto* refusal = dynamic_cast<const net::AwsError*>(&error)) found = net::details_of(*refusal);
  if (const auto* capacity = dynamic_cast<const cluster::NoCapacity*>(&error)) found = capacity->details();
  Json details;
  for (const auto& [name, value] : found) details[name] = value;
  return details;
}

}  // namespace dtrain::cli
