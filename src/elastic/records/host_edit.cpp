#include "host_edit.hpp"

#include <fmt/format.h>

#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/host_file.hpp>

namespace dtrain::elastic {
namespace {

std::vector<std::string> texts_at(const Json& request, std::string_view key) {
  std::vector<std::string> texts;
  if (const Json* list = request.find(key)) {
    for (const Json& text : list->as_array()) texts.push_back(text.as_string());
  }
  return texts;
}

void check_share(const std::vector<std::string>& removed, std::size_t present, const Json& request) {
  const Json* any_number = request.find("any_number");
  if (2 * removed.size() <= present || (any_number && any_number->as_bool())) return;
  throw UsageError(fmt::format("this removes {} of {} hosts", removed.size(), present),
                   fmt::format("`dtrain hosts remove {} --yes` does it all the same", join(removed, " ")));
}

}  // namespace

std::string edited_hosts(std::string text, const Json& request) {
  for (const std::string& line : texts_at(request, "add")) text = with_host(text, line);
  const std::size_t present = parse_host_file(text).hosts.size();
  const std::vector<std::string> removed = texts_at(request, "remove");
  for (const std::string& name : removed) text = without_host(text, name);
  check_share(removed, present, request);
  return text;
}

}  // namespace dtrain::elastic
