"""The base of all models."""

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator


class Model(BaseModel):
    """Part of a response. Fields and values that a later version of the API adds are kept as they are."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_new_values(cls, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            if all(each["type"] == "literal_error" for each in error.errors()):
                return value
            raise


Data = TypeVar("Data")
Pagination = TypeVar("Pagination")


class Answer(Model, Generic[Data]):
    """The body of a successful response."""

    data: Data
    warnings: list[str] = []


class PageAnswer(Answer[Data], Generic[Data, Pagination]):
    """The body with a page of a list."""

    pagination: Pagination
    total: int
