#include <dtrain/backend/backend.hpp>
