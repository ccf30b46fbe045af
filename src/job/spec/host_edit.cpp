#include "host_edit.hpp"

#include "job_client.hpp"

namespace dtrain::job {
namespace {

Json json_of(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(text);
  return json;
}

}  // namespace

void edit_hosts(const JobFolder& folder, const HostEdit& edit) {
  ask_coordinator(folder, Json::object({{"ask", "edit-hosts"},
                                        {"add", json_of(edit.add)},
                                        {"remove", json_of(edit.remove)},
                                        {"any_number", edit.any_number}}));
}

}  // namespace dtrain::job
