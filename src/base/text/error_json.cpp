#include <dtrain/base/error_json.hpp>

#include <string>

namespace dtrain {
namespace {

template <typename Kind>
void throw_if_it_is(std::string_view kind, const std::string& message, const std::string& hint) {
  const Kind error(message, hint);
  if (error.kind() == kind) throw error;
}

}  // namespace

Json error_to_json(const Error& error) {
  return Json::object({{"kind", error.kind()}, {"message", error.what()}, {"hint", error.hint()}});
}

void throw_error(const Json& told) {
  const std::string kind = told.at("kind").as_string();
  const std::string message = told.at("message").as_string();
  const std::string hint = told.at("hint").as_string();
  throw_if_it_is<UsageError>(kind, message, hint);
  throw_if_it_is<DataError>(kind, message, hint);
  throw_if_it_is<RemoteError>(kind, message, hint);
  throw_if_it_is<PeerLost>(kind, message, hint);
  throw_if_it_is<Stopped>(kind, message, hint);
  throw Error(message, hint);
}

}  // namespace dtrain
