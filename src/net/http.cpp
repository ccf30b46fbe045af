#include <dtrain/net/http.hpp>
